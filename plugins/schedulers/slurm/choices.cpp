#include "choices.hpp"

namespace hpcbatch::slurm {

const std::vector<std::string>& choice_keys() {
  static const std::vector<std::string> all = {
      "account", "constraint",  "licenses", "nice", "nodelist", "prefer",
      "qos",     "reservation", "switches", "tmp",  "wckey",
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
