#include "documents/moments.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <string>
#include <utility>

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

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

std::string without_blanks(std::string_view text) {
  std::string word(text);
  std::erase_if(word, is_blank);
  return word;
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

enum class Kind : std::uint8_t { Fixed, TimeOfDay, Yearless };

struct Reading {
  double seconds;
  Kind kind;
};

/// `12:00`, `noon`.
bool read_time(std::string_view text, std::tm& parts) {
  static constexpr std::array<std::pair<std::string_view, int>, 4> kWords{
      {{"midnight", 0}, {"noon", 12}, {"fika", 15}, {"teatime", 16}}};
  parts.tm_min = parts.tm_sec = 0;
  for (const auto& [word, hour] : kWords) {
    if (text != word) continue;
    parts.tm_hour = hour;
    return true;
  }
  return read_as(text, kTimesOfDay, parts);
}

/// Whether its month has such a day: strptime(3) takes the 30th of February, mktime(3) makes it the 2nd of March.
bool is_of_calendar(const std::tm& parts) {
  return std::chrono::year_month_day(std::chrono::year(parts.tm_year + 1900),
                                     std::chrono::month(static_cast<unsigned>(parts.tm_mon) + 1),
                                     std::chrono::day(static_cast<unsigned>(parts.tm_mday)))
      .ok();
}

/// `tomorrow`, `2026-01-31`; its midnight.
std::optional<Kind> read_day(std::string_view text, std::tm& parts) {
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  if (text == "today") return Kind::Fixed;
  if (text == "tomorrow") {
    ++parts.tm_mday;
    return Kind::Fixed;
  }
  std::optional<Kind> kind;
  if (read_as(text, std::array{"%Y-%m-%d", "%m/%d/%y", "%m.%d.%y", "%m%d%y"}, parts))
    kind = Kind::Fixed;
  else if (read_as(text, std::array{"%m/%d", "%m.%d", "%m%d"}, parts))
    kind = Kind::Yearless;
  return is_of_calendar(parts) ? kind : std::nullopt;
}

std::optional<Reading> read_day_and_time(std::string_view day, std::string_view time, double now) {
  std::tm parts = local(now);
  const auto kind = read_day(day, parts);
  if (!kind || !read_time(time, parts)) return std::nullopt;
  return Reading{seconds_of(parts), *kind};
}

/// `now+1hour`, with blanks between its parts or without.
std::optional<double> relative_moment(const std::string& text, double now) {
  const std::size_t sign = std::min(text.find_first_of("+-"), text.size());
  const std::string word = text.substr(0, sign);
  std::tm parts = local(now);
  double from = now;
  if (word != "now") {
    if (!read_time(word, parts) && !(word.starts_with("to") && read_day(word, parts)))
      return std::nullopt;
    from = seconds_of(parts);
  }
  if (sign == text.size()) return word == "now" ? std::optional(from) : std::nullopt;
  const auto offset = offset_of(std::string_view(text).substr(sign));
  return offset ? std::optional(from + *offset) : std::nullopt;
}

std::optional<Reading> read_moment(std::string_view said, double now) {
  const std::string text = lower_case(std::string(said));
  if (text.starts_with("uts")) {
    const auto seconds = number_in<double>(std::string_view(text).substr(3));
    return seconds ? std::optional(Reading{*seconds, Kind::Fixed}) : std::nullopt;
  }
  if (const auto moment = relative_moment(without_blanks(text), now))
    return Reading{*moment, Kind::Fixed};
  std::tm parts = local(now);
  if (read_time(text, parts)) return Reading{seconds_of(parts), Kind::TimeOfDay};
  parts = local(now);
  if (const auto kind = read_day(text, parts)) return Reading{seconds_of(parts), *kind};
  for (std::size_t at = text.find_first_of("t- "); at != std::string::npos;
       at = text.find_first_of("t- ", at + 1)) {
    const std::string_view one = std::string_view(text).substr(0, at);
    const std::string_view other = std::string_view(text).substr(at + 1);
    if (const auto moment = read_day_and_time(one, other, now)) return moment;
    if (text[at] != ' ') continue;
    if (const auto moment = read_day_and_time(other, one, now)) return moment;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> parse_moment(std::string_view text, double now) {
  const auto moment = read_moment(text, now);
  return moment ? std::optional(moment->seconds) : std::nullopt;
}

std::optional<double> parse_coming_moment(std::string_view text, double now) {
  const auto moment = read_moment(text, now);
  if (!moment) return std::nullopt;
  if (moment->seconds >= now || moment->kind == Kind::Fixed) return moment->seconds;
  std::tm parts = local(moment->seconds);
  if (moment->kind == Kind::TimeOfDay)
    ++parts.tm_mday;
  else
    ++parts.tm_year;
  return seconds_of(parts);
}

}  // namespace hpcbatch
