#include "documents/moments.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <string>

namespace hpcbatch {
namespace {

constexpr double kMinute = 60, kHour = 3600, kDay = 86'400;
constexpr std::array kTimesOfDay{"%H:%M:%S", "%H:%M",      "%I:%M%p",
                                 "%I:%M %p", "%I:%M:%S%p", "%I:%M:%S %p"};

std::tm local(double seconds) {
  const auto whole = static_cast<std::time_t>(std::floor(seconds));
  std::tm parts{};
  ::localtime_r(&whole, &parts);
  return parts;
}

double seconds_of(std::tm parts) {
  parts.tm_isdst = -1;
  return static_cast<double>(std::mktime(&parts));
}

/// All of a text as one of these formats of strptime(3).
template <std::size_t Size>
bool read_as(std::string_view text, const std::array<const char*, Size>& formats, std::tm& parts) {
  const std::string whole(text);
  for (const char* format : formats) {
    std::tm read = parts;
    const char* end = ::strptime(whole.c_str(), format, &read);
    if (end == nullptr || *end != '\0') continue;
    parts = read;
    return true;
  }
  return false;
}

std::optional<double> unit_of(std::string_view word) {
  if (word.ends_with('s') && word.size() > 1) word.remove_suffix(1);
  if (word.empty() || word == "second" || word == "sec" || word == "s") return 1;
  if (word == "minute" || word == "min") return kMinute;
  if (word == "hour") return kHour;
  if (word == "day") return kDay;
  if (word == "week") return 7 * kDay;
  return std::nullopt;
}

/// `-2hours`
std::optional<double> offset_of(std::string_view text) {
  const double sign = text.front() == '-' ? -1 : 1;
  text.remove_prefix(1);
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{}) return std::nullopt;
  const auto unit = unit_of(text.substr(static_cast<std::size_t>(end - text.data())));
  if (!unit) return std::nullopt;
  return sign * static_cast<double>(count) * *unit;
}

std::optional<double> named_moment(std::string_view word, double now) {
  std::tm day = local(now);
  day.tm_hour = day.tm_min = day.tm_sec = 0;
  if (word == "now") return now;
  if (word == "today" || word == "midnight") return seconds_of(day);
  if (word == "tomorrow") ++day.tm_mday;
  if (word == "noon") day.tm_hour = 12;
  if (word == "fika") day.tm_hour = 15;
  if (word == "teatime") day.tm_hour = 16;
  if (word == "tomorrow" || day.tm_hour != 0) return seconds_of(day);
  return std::nullopt;
}

}  // namespace

std::optional<double> parse_moment(std::string_view text, double now) {
  if (text.empty()) return std::nullopt;
  if (text.starts_with("uts")) {
    double seconds = 0;
    const auto [end, error] = std::from_chars(text.data() + 3, text.data() + text.size(), seconds);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional(seconds)
                                                                    : std::nullopt;
  }
  const std::size_t sign = text.find_first_of("+-");
  const std::string_view word = text.substr(0, sign);
  if (const auto named = named_moment(word, now)) {
    if (sign == std::string_view::npos) return named;
    const auto offset = offset_of(text.substr(sign));
    return offset ? std::optional(*named + *offset) : std::nullopt;
  }
  std::tm parts = local(now);
  parts.tm_sec = 0;
  if (read_as(text, kTimesOfDay, parts)) return seconds_of(parts);
  parts.tm_hour = parts.tm_min = 0;
  if (read_as(text,
              std::array{"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%m/%d/%y", "%m/%d",
                         "%m.%d.%y", "%m.%d", "%m%d%y", "%m%d", "%m/%d/%y-%H:%M:%S",
                         "%m/%d/%y-%H:%M", "%m/%d-%H:%M:%S", "%m/%d-%H:%M"},
              parts))
    return seconds_of(parts);
  return std::nullopt;
}

std::optional<double> parse_coming_moment(std::string_view text, double now) {
  const auto moment = parse_moment(text, now);
  if (!moment || *moment >= now) return moment;
  std::tm parts = local(*moment);
  std::tm read{};
  const bool is_time_of_day = text == "midnight" || text == "noon" || text == "fika" ||
                              text == "teatime" || read_as(text, kTimesOfDay, read);
  const bool has_no_year =
      read_as(text, std::array{"%m/%d", "%m.%d", "%m%d", "%m/%d-%H:%M:%S", "%m/%d-%H:%M"}, read);
  if (is_time_of_day)
    ++parts.tm_mday;
  else if (has_no_year)
    ++parts.tm_year;
  else
    return moment;
  return seconds_of(parts);
}

}  // namespace hpcbatch
