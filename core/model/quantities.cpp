#include "model/quantities.hpp"

#include <hpcbatch/batch_time.hpp>
#include <hpcbatch/text.hpp>

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace hpcbatch {
namespace {

// Centuries, or exabytes, are mistakes and would overflow what is computed from them.
constexpr double kLongestSeconds = 100.0 * 366 * 24 * 3600;
constexpr double kLargestBytes = 1024.0 * 1024 * 1024 * 1024 * 512;

bool take_number(std::string_view& text, double& value) {
  if (text.empty() || text.front() < '.' || text.front() > '9') return false;  // no sign, no "inf"
  const auto [stop, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return true;
}

std::string_view take_word(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && std::isalpha(static_cast<unsigned char>(text[length]))) ++length;
  const std::string_view word = text.substr(0, length);
  text.remove_prefix(length);
  return word;
}

std::optional<Duration> checked_duration(double seconds) {
  if (!(seconds >= 0) || seconds > kLongestSeconds) return std::nullopt;
  return Duration{static_cast<std::int64_t>(std::llround(seconds * 1e6))};
}

}  // namespace

std::optional<double> seconds_in(std::string_view unit) {
  if (unit == "ms") return 0.001;
  if (unit == "s" || unit == "sec") return 1;
  if (unit == "m" || unit == "min") return 60;
  if (unit == "h") return 3600;
  if (unit == "d") return 24 * 3600;
  return std::nullopt;
}

std::optional<double> bytes_in(std::string_view unit) {
  if (!unit.empty() && (unit.back() == 'B' || unit.back() == 'b')) unit.remove_suffix(1);
  if (unit.size() == 2 && unit[1] == 'i') unit.remove_suffix(1);
  if (unit.empty()) return 1;
  static constexpr std::string_view kSteps = "KMGTP";
  const auto step = kSteps.find(upper_case(unit.front()));
  if (unit.size() > 1 || step == std::string_view::npos) return std::nullopt;
  return std::pow(1024.0, static_cast<double>(step + 1));
}

std::optional<Duration> parse_duration(std::string_view text) {
  if (text.find(':') != std::string_view::npos) {
    const auto clock = read_clock(text);
    // `1:30` means minutes to some and hours to others.
    if (!clock || clock->count != 3) return std::nullopt;
    return checked_duration(static_cast<double>(clock->from(0).count()));
  }
  double seconds = 0;
  bool first = true;
  do {
    double value = 0;
    if (!take_number(text, value)) return std::nullopt;
    const std::string_view word = take_word(text);
    const auto unit = word.empty() ? std::optional(1.0) : seconds_in(word);
    // `1h30` means minutes to some and seconds to others: only a number alone may be bare.
    if (!unit || (word.empty() && !(first && text.empty()))) return std::nullopt;
    seconds += value * *unit;
    first = false;
  } while (!text.empty());
  return checked_duration(seconds);
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  double value = 0;
  if (!take_number(text, value)) return std::nullopt;
  const auto unit = bytes_in(take_word(text));
  if (!unit || !text.empty()) return std::nullopt;
  value *= *unit;
  if (!(value >= 0) || value > kLargestBytes) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(value));
}

std::string show_duration(Duration duration) {
  const std::int64_t us = duration.count();
  if (us < 0) return "-" + show_duration(-duration);
  if (us != 0 && us < 1'000) return fmt::format("{}us", us);
  if (us != 0 && us < 1'000'000) return fmt::format("{}ms", us / 1000);
  const std::int64_t seconds = us / 1'000'000;
  if (seconds < 60) {
    const std::int64_t tenths = us / 100'000 % 10;
    return tenths == 0 ? fmt::format("{}s", seconds) : fmt::format("{}.{}s", seconds, tenths);
  }
  const std::int64_t days = seconds / 86400;
  const std::int64_t hours = seconds / 3600 % 24;
  const std::int64_t minutes = seconds / 60 % 60;
  std::string text;
  if (days) text += fmt::format("{}d", days);
  if (hours) text += fmt::format("{}h", hours);
  if (minutes && !days) text += fmt::format("{}m", minutes);
  if (seconds % 60 && !days && !hours) text += fmt::format("{}s", seconds % 60);
  return text;
}

std::string show_size(std::uint64_t bytes) {
  static constexpr std::array<char, 5> kSteps{'K', 'M', 'G', 'T', 'P'};
  if (bytes < 1024) return fmt::format("{}B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t step = 0;
  for (value /= 1024; value >= 1023.95 && step + 1 < kSteps.size(); ++step) value /= 1024;
  return value == std::floor(value) ? fmt::format("{:.0f}{}", value, kSteps[step])
                                    : fmt::format("{:.1f}{}", value, kSteps[step]);
}

std::string show_count(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace hpcbatch
