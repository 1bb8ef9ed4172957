#include "cli/parse/spelled.hpp"

#include "documents/texts.hpp"
#include "model/index_set.hpp"
#include "model/quantities.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& expected) {
  throw std::invalid_argument("'" + show_text(text) + "' is not " + expected);
}

template <class Number>
bool is_number(std::string_view text, Number& into) {
  const auto number = number_in<Number>(text);
  into = number.value_or(Number{});
  return number.has_value();
}

/// No file of tasks holds more.
constexpr std::uint64_t kMostSubmissions = 1'000'000;

struct Submissions {
  std::uint64_t first{0}, last{0};
};

std::optional<Submissions> submissions_of(std::string_view text) {
  Submissions found;
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos || !is_number(text.substr(0, dash), found.first) ||
      !is_number(text.substr(dash + 1), found.last) || found.first == 0 ||
      found.last < found.first || found.last - found.first >= kMostSubmissions)
    return std::nullopt;
  return found;
}

/// `12_3`: of an array the task with the index 3, as batch systems write it.
bool is_element(std::string_view text) {
  const std::size_t line = text.find('_');
  std::uint64_t array = 0, index = 0;
  return line != std::string_view::npos && is_number(text.substr(0, line), array) && array > 0 &&
         is_number(text.substr(line + 1), index);
}

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
  if (!text.ends_with('w')) return text;
  const auto weeks = number_in<int>(std::string_view(text).substr(0, text.size() - 1));
  return weeks && *weeks < 10'000 ? std::to_string(*weeks * 7) + "d" : text;
}

std::optional<std::time_t> named_day(const std::string& said, std::time_t now) {
  const std::string text = lower_case(said);
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

std::vector<std::string> submissions_in(const std::string& id) {
  const auto range = submissions_of(id);
  if (!range) return {id};
  std::vector<std::string> ids;
  ids.reserve(range->last - range->first + 1);
  for (std::uint64_t more = 0; more <= range->last - range->first; ++more)
    ids.push_back(std::to_string(range->first + more));
  return ids;
}

std::string shortest_words(const std::vector<std::string>& ids) {
  std::string words;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::size_t last = i;
    std::uint64_t number = 0;
    if (is_number(ids[i], number)) {
      while (last + 1 < ids.size() && ids[last + 1] == std::to_string(number + last + 1 - i))
        ++last;
    }
    words += (words.empty() ? "" : " ") + ids[i];
    if (last > i) words += "-" + ids[last];
    i = last;
  }
  return words;
}

const std::string& checked_id(const std::string& text) {
  const std::size_t dot = text.find('.');
  const std::string_view submission = std::string_view(text).substr(0, dot);
  std::uint64_t number = 0;
  if (submissions_of(text) || is_element(text)) return text;
  bool is_good = submission == "last" || (is_number(submission, number) && number > 0);
  if (is_good && dot != std::string::npos) {
    is_good = parse_index_set(std::string_view(text).substr(dot + 1)).has_value();
  }
  if (!is_good) {
    std::string meant;
    if (text == "all" || text == "*") meant = "; --name '*' means all that you have submitted";
    std::uint64_t first = 0, last = 0;
    const std::size_t dash = text.find('-');
    if (dash != std::string::npos && is_number(std::string_view(text).substr(0, dash), first) &&
        is_number(std::string_view(text).substr(dash + 1), last) && last > first)
      meant = "; a range holds a million at most";
    else if (text.find_first_of(",-") != std::string::npos && dot == std::string::npos)
      meant = "; several are written apart, 12 13 17, or as a range from low to high";
    refuse(text, "an id; ids are like 12, 12.345, 12.1-99, 12-15 or last" + meant);
  }
  return text;
}

ArrayOption parse_array(std::string_view text) {
  const std::size_t percent = text.find('%');
  ArrayOption array{std::string(text.substr(0, percent)), 0};
  bool is_good = parse_index_set(array.indices).has_value();
  if (percent != std::string_view::npos) {
    is_good =
        is_good && is_number(text.substr(percent + 1), array.max_running) && array.max_running > 0;
  }
  if (!is_good)
    refuse(text,
           "an array; arrays are like 1-100, 1-100:5 (step) or 1-100%20 (at most 20 at once)");
  return array;
}

std::optional<HaltOption> parse_halt(std::string_view text) {
  constexpr const char* kForm = "when to halt; write soon,fail=3, now,fail=10% or never";
  if (text == "never") return std::nullopt;
  HaltOption halt;
  const std::string_view all = text;
  const std::size_t comma = text.find(',');
  const std::string_view when = text.substr(0, comma);
  if ((when != "soon" && when != "now") || comma == std::string_view::npos) refuse(all, kForm);
  halt.ends_running = when == "now";
  text.remove_prefix(comma + 1);
  if (text.starts_with("success=") || text.starts_with("done="))
    refuse(all, "what can be counted here: failures alone, as in soon,fail=3");
  if (!text.starts_with("fail=")) refuse(all, kForm);
  text.remove_prefix(5);
  if (text.ends_with('%')) {
    double percent = 0;
    if (!is_number(text.substr(0, text.size() - 1), percent) || !(percent > 0) || percent > 100)
      refuse(all, kForm);
    halt.share = percent / 100;
    return halt;
  }
  std::uint32_t failures = 0;
  if (!is_number(text, failures) || failures == 0) refuse(all, kForm);
  halt.failures = failures - 1;
  return halt;
}

HaltOption parse_max_fails(std::string_view text) {
  HaltOption halt;
  std::uint32_t failures = 0;
  if (!is_number(text, failures) || failures > 1'000'000'000)
    refuse(text, "how many may fail; write a number from 0 up");
  halt.failures = failures;
  return halt;
}

std::pair<std::string, std::string> parse_assignment(std::string_view text, std::string_view flag) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    refuse(text, "what " + std::string(flag) + " expects: NAME=VALUE");
  }
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

Assignments WorkOptions::pairs(std::string_view key) const {
  Assignments all;
  if (const auto at = said.find(key); at != said.end())
    for (const std::string& text : at->second) all.push_back(parse_assignment(text, key));
  return all;
}

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

std::time_t since_now(const std::string& text) {
  return parse_since(text, std::time(nullptr));
}

double seconds_of(const std::string& text) {
  const auto duration = parse_duration(text);
  if (!duration || *duration <= Duration{}) refuse(text, "a duration, like 90s, 2h or 3d");
  return std::chrono::duration<double>(*duration).count();
}

}  // namespace hpcbatch
