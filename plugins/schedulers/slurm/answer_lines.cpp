#include "answer_lines.hpp"

#include <hpcbatch/text.hpp>

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

std::optional<MarkedRecords> read_marked(std::string_view text) {
  constexpr std::string_view kSays = "hbmark ";
  constexpr std::size_t kShortest = 24;  // else there was no /dev/urandom
  std::size_t begin = text.starts_with(kSays) ? 0 : text.find("\nhbmark ");
  if (begin == std::string_view::npos) return std::nullopt;
  if (begin > 0) ++begin;
  text.remove_prefix(begin + kSays.size());
  const std::string_view mark = text.substr(0, text.find('\n'));
  if (mark.size() < kShortest) return std::nullopt;
  text.remove_prefix(mark.size());
  /// The text before the next mark, which is taken away too.
  const auto next = [&]() -> std::optional<std::string_view> {
    const auto end = text.find(mark);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view piece = text.substr(0, end);
    text.remove_prefix(end + mark.size());
    return piece;
  };
  MarkedRecords found;
  for (;;) {
    const auto between = next();
    if (!between || between->find_first_not_of('\n') != std::string_view::npos) return std::nullopt;
    if (text.starts_with("end\n")) {
      found.rest = text.substr(4);
      return found;
    }
    const auto head = next();
    const auto free = head ? next() : std::nullopt;
    if (!free) return std::nullopt;
    found.records.push_back({*head, *free});
  }
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

double amount_in(std::string_view text, double plain) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value >= 0 && value < 1e15)) return 0;
  constexpr std::string_view kUnits = "KMGTP";
  const auto unit = end == text.data() + text.size() ? std::string_view::npos : kUnits.find(*end);
  if (unit == std::string_view::npos) return value * plain;
  for (std::size_t i = 0; i <= unit; ++i) value *= 1024;
  return value;
}

std::map<std::string, double> gpus_in_gres(std::string_view gres) {
  std::map<std::string, double> gpus;
  std::string plain;
  int depth = 0;
  for (const char c : gres) {
    if (c == '(') ++depth;
    if (depth == 0) plain += c;
    if (c == ')' && depth > 0) --depth;
  }
  for (const std::string& item : split(plain, ',')) {
    auto parts = split(item, ':');
    if (!parts.empty() && parts[0] == "gres") parts.erase(parts.begin());
    if (parts.empty() || parts[0] != "gpu") continue;
    const double count = parts.size() > 1 ? amount_in(parts.back(), 1) : 1;
    gpus[parts.size() > 2 ? parts[1] : ""] += count;
  }
  return gpus;
}

std::optional<std::chrono::seconds> read_moment(std::string_view text) {
  // Beyond it sums would overflow.
  constexpr std::int64_t kLast = 1'000'000'000'000;
  const auto value = number_in<std::int64_t>(text);
  if (!value || *value <= 0 || *value > kLast) return std::nullopt;
  return std::chrono::seconds{*value};
}

}  // namespace hpcbatch::slurm
