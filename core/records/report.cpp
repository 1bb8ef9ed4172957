#include "records/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace hpcbatch::records {
namespace {

constexpr std::array<std::string_view, 4> kWords{"kind", "site", "client", "day"};

std::string key_of(const Cell& cell, By by) {
  switch (by) {
    case By::Kind:
      return cell.kind;
    case By::Site:
      return cell.site;
    case By::Client:
      return cell.client;
    case By::Day:
      return show_day(cell.day);
  }
  return "";
}

}  // namespace

std::optional<By> parse_by(std::string_view word) {
  const auto at = std::find(kWords.begin(), kWords.end(), word);
  if (at == kWords.end()) return std::nullopt;
  return static_cast<By>(at - kWords.begin());
}

std::string show_day(std::int32_t day) {
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{day}}};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

Usage sum_of(const UsageRows& rows) {
  Usage sum;
  for (const auto& [cell, usage] : rows) sum += usage;
  return sum;
}

std::vector<std::pair<std::string, Usage>> put_together(const UsageRows& rows, By by) {
  std::map<std::string, Usage> sums;
  for (const auto& [cell, usage] : rows) sums[key_of(cell, by)] += usage;
  std::vector<std::pair<std::string, Usage>> all(sums.begin(), sums.end());
  if (by != By::Day) {
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.second.cpu_asked > b.second.cpu_asked;
    });
  }
  return all;
}

std::vector<KindUse> kinds_of(const UsageRows& rows,
                              const std::vector<std::pair<std::string, Profile>>& profiles) {
  const std::map<std::string, Profile> known(profiles.begin(), profiles.end());
  std::vector<KindUse> kinds;
  for (auto& [kind, usage] : put_together(rows, By::Kind)) {
    const auto at = known.find(kind);
    kinds.push_back({kind, usage, at == known.end() ? Profile{} : at->second});
  }
  return kinds;
}

}  // namespace hpcbatch::records
