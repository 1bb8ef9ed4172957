#include "slurm_commands/times.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace hpcbatch::slurm_commands {
namespace {

std::tm local(double seconds) {
  const auto whole = static_cast<std::time_t>(std::floor(seconds));
  std::tm parts{};
  ::localtime_r(&whole, &parts);
  return parts;
}

}  // namespace

std::string moment(double seconds, const std::string& format) {
  const std::tm parts = local(seconds);
  const bool is_standard = format.empty() || format == "standard" || format == "relative";
  char text[128];
  const std::size_t size =
      std::strftime(text, sizeof text, is_standard ? "%Y-%m-%dT%H:%M:%S" : format.c_str(), &parts);
  return {text, size};
}

std::string short_duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::max(0.0, seconds));
  const auto days = whole / 86'400, hours = whole / 3600 % 24, minutes = whole / 60 % 60;
  char text[64];
  if (days != 0) {
    std::snprintf(text, sizeof text, "%ld-%02ld:%02ld:%02ld", static_cast<long>(days),
                  static_cast<long>(hours), static_cast<long>(minutes),
                  static_cast<long>(whole % 60));
  } else if (hours != 0) {
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", static_cast<long>(hours),
                  static_cast<long>(minutes), static_cast<long>(whole % 60));
  } else {
    std::snprintf(text, sizeof text, "%ld:%02ld", static_cast<long>(minutes),
                  static_cast<long>(whole % 60));
  }
  return text;
}

std::string long_duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::max(0.0, seconds));
  char text[64], days[32] = "";
  if (whole >= 86'400) std::snprintf(days, sizeof days, "%ld-", static_cast<long>(whole / 86'400));
  std::snprintf(text, sizeof text, "%s%02ld:%02ld:%02ld", days,
                static_cast<long>(whole / 3600 % 24), static_cast<long>(whole / 60 % 60),
                static_cast<long>(whole % 60));
  return text;
}

std::string memory_text(std::uint64_t bytes) {
  const std::uint64_t megabytes = (bytes + (1U << 20U) - 1) >> 20U;
  if (megabytes != 0 && megabytes % 1024 == 0) return std::to_string(megabytes / 1024) + "G";
  return std::to_string(megabytes) + "M";
}

}  // namespace hpcbatch::slurm_commands
