#include "words.hpp"

#include <algorithm>

namespace hpcbatch::slurm {

std::vector<std::string> fields(std::string_view line, std::size_t count) {
  std::vector<std::string> parts;
  while (parts.size() + 1 < count) {
    const auto bar = line.find('|');
    if (bar == std::string_view::npos) return {};
    parts.emplace_back(line.substr(0, bar));
    line.remove_prefix(bar + 1);
  }
  parts.emplace_back(line);
  return parts;
}

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> parts;
  for (;;) {
    const auto end = std::min(text.find(by), text.size());
    parts.emplace_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace hpcbatch::slurm
