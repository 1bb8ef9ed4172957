// How a task can end: the closed list, with what each means for retries.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hpcbatch {

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
};
inline constexpr int kFailures = static_cast<int>(Failure::WorkspaceLost) + 1;

/// The stable word: `ok`, `tool_failed`, `oom_task`, ...
std::string_view to_string(Failure failure);
std::optional<Failure> parse_failure(std::string_view word);

/// Whether the task cannot be blamed: it is then retried without asking and without using up a
/// retry of the user's.
bool is_not_the_tasks_fault(Failure failure);

/// Whether it counts where an array is given up after so many: not what its user has ended, and not
/// what never started because of another's failure.
bool is_a_failure_of_its_own(Failure failure);

}  // namespace hpcbatch
