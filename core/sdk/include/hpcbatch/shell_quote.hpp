// Texts that must pass through a shell, because a batch script is one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

/// The word as sh reads it back unchanged, whatever is in it.
inline std::string shell_quoted(std::string_view word) {
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

/// A whole command line, each argument quoted.
inline std::string shell_quoted(const std::vector<std::string>& argv) {
  std::string line;
  for (const std::string& word : argv) line += (line.empty() ? "" : " ") + shell_quoted(word);
  return line;
}

}  // namespace hpcbatch
