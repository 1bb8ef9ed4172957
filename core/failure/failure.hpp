// How a task can end: the closed list that engine, pilot and link share, and the stable words by
// which it is told.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hpcbatch {

/// Added to at its end alone: the store keeps the numbers.
enum class Failure : std::uint8_t {
  Ok,
  ToolFailed,
  ToolSignal,
  OomTask,
  TimeTask,
  DiskTask,
  Looping,
  InputMissing,
  InputChanged,
  OutputMissing,
  OutputInvalid,
  StageInFailed,
  StageOutFailed,
  ContainerMissing,
  ContainerFailed,
  GpuError,
  NodeLost,
  ServiceLost,
  PilotWalltime,
  PilotPreempted,
  PilotKilled,
  DependencyFailed,
  SetAside,
  NeverFits,
  Cancelled,
  EngineError,
  WorkspaceLost,   ///< it had ended, and what it left could not be written to the workspace
  OomGpu,          ///< it took more than its part of a GPU's memory
  DeadlineMissed,  ///< it could not end, or has not, before the moment that its user named
  Requeued,        ///< it is to go on in another attempt, as it or its user said
};
inline constexpr int kFailures = static_cast<int>(Failure::Requeued) + 1;

/// In the same order.
inline constexpr std::array<std::string_view, kFailures> kFailureWords{"ok",
                                                                       "tool_failed",
                                                                       "tool_signal",
                                                                       "oom_task",
                                                                       "time_task",
                                                                       "disk_task",
                                                                       "looping",
                                                                       "input_missing",
                                                                       "input_changed",
                                                                       "output_missing",
                                                                       "output_invalid",
                                                                       "stage_in_failed",
                                                                       "stage_out_failed",
                                                                       "container_missing",
                                                                       "container_failed",
                                                                       "gpu_error",
                                                                       "node_lost",
                                                                       "service_lost",
                                                                       "pilot_walltime",
                                                                       "pilot_preempted",
                                                                       "pilot_killed",
                                                                       "dependency_failed",
                                                                       "set_aside",
                                                                       "never_fits",
                                                                       "cancelled",
                                                                       "engine_error",
                                                                       "workspace_lost",
                                                                       "oom_gpu",
                                                                       "deadline",
                                                                       "requeued"};
static_assert(!kFailureWords.back().empty(), "a failure has no word");

/// `ok`, `tool_failed`, `oom_task`, ...
constexpr std::string_view to_string(Failure failure) {
  return kFailureWords[static_cast<std::size_t>(failure)];
}

constexpr std::optional<Failure> parse_failure(std::string_view word) {
  for (std::size_t i = 0; i < kFailureWords.size(); ++i) {
    if (kFailureWords[i] == word) return static_cast<Failure>(i);
  }
  return std::nullopt;
}

// Which failures are asked for, as people and programs spell it.

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
