#include "words.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

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

std::optional<std::chrono::seconds> read_moment(std::string_view text) {
  // Beyond it sums would overflow.
  constexpr std::int64_t kLast = 1'000'000'000'000;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value <= 0 || value > kLast)
    return std::nullopt;
  return std::chrono::seconds{value};
}

}  // namespace hpcbatch::slurm
