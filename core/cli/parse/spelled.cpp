#include "cli/parse/spelled.hpp"

#include "documents/text_check.hpp"
#include "model/index_set.hpp"
#include "model/quantities.hpp"

#include <charconv>
#include <cmath>
#include <stdexcept>

namespace hpcbatch {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& expected) {
  throw std::invalid_argument("'" + show_text(text) + "' is not " + expected);
}

template <class Number>
bool is_number(std::string_view text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc{} && end == text.data() + text.size();
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
  if (submissions_of(text)) return text;
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

const std::string& checked_size(const std::string& text) {
  if (!parse_size(text)) refuse(text, "a size, like 512M, 8G or a number of bytes");
  return text;
}

const std::string& checked_duration(const std::string& text) {
  if (!parse_duration(text))
    refuse(text, "a duration, like 90s, 1h30m, 01:30:00 or a number of seconds");
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

std::int64_t parse_whole(std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t number = 0;
  if (!is_number(text, number) || number < low || number > high)
    refuse(text, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  return number;
}

double parse_cpus(std::string_view text) {
  const double cpus = parse_amount(text);
  if (cpus <= 0) refuse(text, "a number of cpus; a task needs more than 0, as 1 or 0.5");
  return cpus;
}

double parse_amount(std::string_view text) {
  double value = 0;
  if (!is_number(text, value) || !std::isfinite(value) || value < 0)
    refuse(text, "a number, like 4 or 0.5");
  return value;
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

}  // namespace hpcbatch
