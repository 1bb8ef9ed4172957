// Scheduler `pbs`: the commands qsub, qstat, qselect, qdel and pbsnodes of OpenPBS, PBS Pro and
// Torque, and SLURM's that look like them.
#include "pbs.hpp"

namespace hpcbatch::pbs {

Pbs::Pbs(const char* config_yaml) : settings_(read_settings(config_yaml)) {}

Result<std::vector<Offer>> Pbs::read_probe(const CommandOutput& output) const {
  return offers_in(read_survey(output));
}

/// What every qsub has a word for (qsub(1B) of OpenPBS, Torque and SLURM).
std::vector<std::string> Pbs::choice_keys() const {
  return {"account"};
}

std::vector<std::string> Pbs::options_for(const std::vector<std::string>& choices) const {
  std::vector<std::string> options;
  for (const std::string& choice : choices)
    options.insert(options.end(), {"-A", choice.substr(choice.find('=') + 1)});
  return options;
}

}  // namespace hpcbatch::pbs

HPCBATCH_SCHEDULER(hpcbatch::pbs::Pbs, "pbs", "1.0");
