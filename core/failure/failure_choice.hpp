// Which failures are asked for, as people and programs spell it.
#pragma once

#include "failure/failure.hpp"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hpcbatch {

/// How an attempt ended, as far as one can be chosen by it.
struct WayToEnd {
  Failure failure{Failure::Ok};
  std::int32_t exit_code{0};
  std::int32_t signal{0};

  /// As a shell tells it, and as it is shown.
  constexpr std::int32_t shown_exit_code() const { return signal != 0 ? 128 + signal : exit_code; }
};

/// Those that say what is set; 0 and nothing say it of all.  Nobody chooses what ended well.
struct FailureChoice {
  std::optional<Failure> failure;
  std::int32_t exit_code{0};
  std::int32_t signal{0};

  constexpr bool admits(const WayToEnd& one) const {
    return one.failure != Failure::Ok && (!failure || one.failure == *failure) &&
           (exit_code == 0 || one.shown_exit_code() == exit_code) &&
           (signal == 0 || one.signal == signal);
  }
};

/// What `parse_failure_choice` takes, for whoever spelled it otherwise.
inline constexpr std::string_view kFailureChoices =
    "failures are tool_failed, oom_task, node_lost and others, exit:3 (1 to 255), signal:11";

/// `oom_task`, `exit:3` (however it is called that ended so), or `signal:11`.
inline std::optional<FailureChoice> parse_failure_choice(std::string_view text) {
  constexpr std::string_view kExit = "exit:", kSignal = "signal:";
  const auto number_behind = [text](std::string_view word,
                                    std::int32_t most) -> std::optional<std::int32_t> {
    if (!text.starts_with(word)) return std::nullopt;
    std::int32_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data() + word.size(), end, number);
    if (error != std::errc{} || at != end || number < 1 || number > most) return std::nullopt;
    return number;
  };
  if (const auto code = number_behind(kExit, 255)) return FailureChoice{.exit_code = *code};
  if (const auto signal = number_behind(kSignal, 64)) return FailureChoice{.signal = *signal};
  const auto failure = parse_failure(text);
  if (!failure || *failure == Failure::Ok) return std::nullopt;
  return FailureChoice{.failure = failure};
}

}  // namespace hpcbatch
