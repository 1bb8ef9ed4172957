#include "environment.hpp"

#include <algorithm>

namespace hpcbatch {

bool is_variable_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

Environment read_environment(const Keys& keys) {
  Environment environment;
  for (const Keys::Entry& entry : keys.entries("environment", "a map of names to values")) {
    if (!is_variable_name(entry.name))
      Keys::fail(entry, "'" + entry.name + "' is no name of a variable");
    environment[entry.name] = entry.text;
  }
  return environment;
}

}  // namespace hpcbatch
