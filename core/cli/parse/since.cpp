#include "cli/parse/since.hpp"

#include "model/quantities.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>

namespace hpcbatch {
namespace {

constexpr std::array<const char*, 7> kWeek{"sunday",   "monday", "tuesday", "wednesday",
                                           "thursday", "friday", "saturday"};

std::tm local_of(std::time_t time) {
  std::tm local{};
  ::localtime_r(&time, &local);
  return local;
}

/// So many days before today, at its beginning.
std::time_t day_before(std::time_t now, int days) {
  std::tm day = local_of(now);
  day.tm_mday -= days;
  day.tm_hour = day.tm_min = day.tm_sec = 0;
  day.tm_isdst = -1;
  return std::mktime(&day);
}

/// `2w` is 14d.
std::string in_days(const std::string& text) {
  int weeks = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, weeks);
  const bool is_weeks = error == std::errc() && rest + 1 == end && *rest == 'w' && weeks < 10'000;
  return is_weeks ? std::to_string(weeks * 7) + "d" : text;
}

std::optional<std::time_t> named_day(std::string text, std::time_t now) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (text == "today") return day_before(now, 0);
  if (text == "yesterday") return day_before(now, 1);
  const auto at = std::find(kWeek.begin(), kWeek.end(), text);
  if (at == kWeek.end()) return std::nullopt;
  const int back = (local_of(now).tm_wday - static_cast<int>(at - kWeek.begin()) + 7) % 7;
  return day_before(now, back);
}

std::optional<std::time_t> date(const std::string& text) {
  for (const char* format : {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"}) {
    std::tm moment{};
    const char* end = ::strptime(text.c_str(), format, &moment);
    if (end == nullptr || *end != '\0') continue;
    const std::tm asked = moment;
    moment.tm_isdst = -1;
    const std::time_t time = std::mktime(&moment);
    // The 31st of June is another day.
    if (moment.tm_mday == asked.tm_mday && moment.tm_mon == asked.tm_mon) return time;
  }
  return std::nullopt;
}

}  // namespace

std::time_t parse_since(const std::string& text, std::time_t now) {
  const auto duration = parse_duration(in_days(text));
  if (duration && duration->count() > 0)
    return std::max<std::time_t>(0,
                                 now - std::chrono::ceil<std::chrono::seconds>(*duration).count());
  auto moment = named_day(text, now);
  if (!moment) moment = date(text);
  if (!moment) {
    throw std::invalid_argument("'" + text +
                                "' is neither a duration of some years at most, like 2h, 3d or "
                                "2w, nor a day: today, yesterday, monday, 2026-01-31");
  }
  if (*moment < 0) throw std::invalid_argument("'" + text + "' was before 1970");
  if (*moment > now) throw std::invalid_argument("'" + text + "' is still to come");
  return *moment;
}

std::time_t parse_until(const std::string& text, std::time_t now) {
  std::optional<std::time_t> moment = date(text);
  if (const auto duration = parse_duration(text); duration && duration->count() > 0)
    moment = now + std::chrono::ceil<std::chrono::seconds>(*duration).count();
  std::tm clock{};
  if (const char* end = ::strptime(text.c_str(), "%H:%M", &clock); end && *end == '\0') {
    std::tm day = local_of(now);
    day.tm_hour = clock.tm_hour;
    day.tm_min = clock.tm_min;
    day.tm_sec = 0;
    day.tm_isdst = -1;
    moment = std::mktime(&day);
    if (*moment <= now) {
      ++day.tm_mday;
      day.tm_isdst = -1;
      moment = std::mktime(&day);
    }
  }
  if (!moment) {
    throw std::invalid_argument("'" + text +
                                "' is neither a duration, like 8h or 3d, nor a time: 18:00, "
                                "2026-11-28, '2026-11-28 18:00'");
  }
  if (*moment <= now) throw std::invalid_argument("'" + text + "' is over already");
  return *moment;
}

}  // namespace hpcbatch
