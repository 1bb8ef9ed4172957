// Scheduler `slurm`: the commands sbatch, squeue, scancel and sinfo, and sacct where there is
// accounting.
#include "slurm.hpp"

#include "hpcbatch/keys.hpp"

namespace hpcbatch::slurm {
namespace {

/// The arguments are names.  A name nobody knows is no error; with a number that has been forgotten
/// it would be one.  `--user`: root, and others who may, would cancel everybody's of that name.
constexpr const char* kCancel = R"sh(
failed=0
user=$(id -u)
for name in "$@"; do scancel --user="$user" --name="$name" || failed=$?; done
exit $failed
)sh";

}  // namespace

Slurm::Slurm(const char* config_yaml) {
  const Keys none(config_yaml, {},
                  "what sbatch is to be given belongs under 'options' of the site");
}

CommandLine Slurm::cancel(const std::vector<std::string>& names,
                          const std::vector<std::string>&) const {
  CommandLine command{.argv = {"sh", "-c", kCancel, "sh"}};
  command.argv.insert(command.argv.end(), names.begin(), names.end());
  return command;
}

Result<std::vector<Offer>> Slurm::read_probe(const CommandOutput& output) const {
  return offers_in(read_survey(output));
}

/// sbatch(1).  Not: what says how many nodes, GPUs and how long (that is the shape's), what
/// hpcbatch says itself (names, files, `--comment`, `--exclude`), and other clusters.
std::vector<std::string> Slurm::choice_keys() const {
  return {"account", "constraint",  "licenses", "nice", "nodelist", "prefer",
          "qos",     "reservation", "switches", "tmp",  "wckey"};
}

std::vector<std::string> Slurm::options_for(const std::vector<std::string>& choices) const {
  std::vector<std::string> options;
  options.reserve(choices.size());
  for (const std::string& choice : choices) options.push_back("--" + choice);
  return options;
}

}  // namespace hpcbatch::slurm

HPCBATCH_SCHEDULER(hpcbatch::slurm::Slurm, "slurm", "1.0");
