#include "revoked_keys.hpp"

#include <algorithm>

namespace hpcbatch {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlank));
  line.remove_prefix(word.size());
  return word;
}

}  // namespace

bool is_revoked(std::string_view known_hosts, std::string_view key) {
  if (key.empty()) return false;
  while (!known_hosts.empty()) {
    std::string_view line = known_hosts.substr(0, known_hosts.find('\n'));
    known_hosts.remove_prefix(std::min(line.size() + 1, known_hosts.size()));
    if (take_word(line) != "@revoked") continue;
    take_word(line);  // hosts
    take_word(line);  // kind of key
    if (take_word(line) == key) return true;
  }
  return false;
}

}  // namespace hpcbatch
