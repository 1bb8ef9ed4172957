// Times as batch systems write them, in requests and in answers.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hpcbatch {

/// One to three numbers with colons between them, and how many days stand before them.
struct ClockTime {
  std::optional<std::int64_t> days;  ///< nothing: no `D-`
  std::array<std::int64_t, 3> numbers{};
  std::size_t count{0};

  /// `first`: what the first number counts; 0 hours, 1 minutes, 2 seconds.
  std::chrono::seconds from(std::size_t first) const {
    constexpr std::array<std::int64_t, 3> kSeconds{3600, 60, 1};
    std::int64_t sum = days.value_or(0) * 86400;
    for (std::size_t i = 0; i < count; ++i) sum += numbers.at(i) * kSeconds.at(first + i);
    return std::chrono::seconds(sum);
  }
};

/// `N`, `N:N`, `N:N:N`, each also behind `D-`.  Nothing where it is none of those, or a number is too
/// large for any time.
inline std::optional<ClockTime> read_clock(std::string_view text) {
  const auto number_before = [&text](std::size_t end) -> std::optional<std::int64_t> {
    constexpr std::int64_t kMost = 10'000'000'000;
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + end, number);
    if (error != std::errc{} || stop != text.data() + end || number < 0 || number > kMost)
      return std::nullopt;
    text.remove_prefix(std::min(end + 1, text.size()));
    return number;
  };
  ClockTime clock;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    clock.days = number_before(dash);
    if (!clock.days) return std::nullopt;
  }
  for (bool is_last = false; !is_last; ++clock.count) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    is_last = colon == text.size();
    const auto number = number_before(colon);
    if (!number || clock.count == clock.numbers.size()) return std::nullopt;
    clock.numbers.at(clock.count) = *number;
  }
  return clock;
}

/// Minutes, `M:S`, `H:M:S`, `D-H`, `D-H:M` or `D-H:M:S` (sbatch(1), --time), as squeue, sinfo and
/// sacct print them too.
inline std::optional<std::chrono::seconds> slurm_time(std::string_view text) {
  const auto clock = read_clock(text);
  if (!clock) return std::nullopt;
  return clock->from(clock->days || clock->count == 3 ? 0 : 1);
}

/// Seconds, `M:S` or `H:M:S` (pbs_resources(7B), "duration").
inline std::optional<std::chrono::seconds> pbs_time(std::string_view text) {
  const auto clock = read_clock(text);
  if (!clock || clock->days) return std::nullopt;
  return clock->from(clock->numbers.size() - clock->count);
}

}  // namespace hpcbatch
