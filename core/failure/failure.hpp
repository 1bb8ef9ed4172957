// How a task can end: the closed list that engine, pilot and link share, and the stable words by
// which it is told.
#pragma once

#include <array>
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
  WorkspaceLost,  ///< it had ended, and what it left could not be written to the workspace
  OomGpu,         ///< it took more than its part of a GPU's memory
};
inline constexpr int kFailures = static_cast<int>(Failure::OomGpu) + 1;

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
                                                                       "oom_gpu"};
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

}  // namespace hpcbatch
