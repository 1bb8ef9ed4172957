#include "choices.hpp"

namespace hpcbatch::pbs {

const std::vector<std::string>& choice_keys() {
  static const std::vector<std::string> all = {"account"};
  return all;
}

std::vector<std::string> options_for(const std::vector<std::string>& choices) {
  std::vector<std::string> options;
  for (const std::string& choice : choices)
    options.insert(options.end(), {"-A", choice.substr(choice.find('=') + 1)});
  return options;
}

}  // namespace hpcbatch::pbs
