#include "choices.hpp"

namespace hpcbatch::slurm {

const std::vector<ChoiceOption>& choice_options() {
  static const std::vector<ChoiceOption> all = {
      {"account", "account", 'A'},   {"constraint", "constraint", 'C'},
      {"licenses", "licenses", 'L'}, {"nice", "nice", 0},
      {"nodelist", "nodelist", 'w'}, {"prefer", "prefer", 0},
      {"qos", "qos", 'q'},           {"reservation", "reservation", 0},
      {"switches", "switches", 0},   {"tmp", "tmp", 0},
      {"wckey", "wckey", 0},
  };
  return all;
}

std::vector<std::string> options_for(const std::vector<std::string>& choices) {
  std::vector<std::string> options;
  options.reserve(choices.size());
  for (const std::string& choice : choices) options.push_back("--" + choice);
  return options;
}

}  // namespace hpcbatch::slurm
