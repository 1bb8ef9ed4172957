#include "model/task.hpp"

#include <array>

namespace hpcbatch {

bool is_not_the_tasks_fault(Failure failure) {
  switch (failure) {
    case Failure::GpuError:
    case Failure::NodeLost:
    case Failure::ServiceLost:
    case Failure::PilotWalltime:
    case Failure::PilotPreempted:
    case Failure::PilotKilled:
    case Failure::WorkspaceLost:
    case Failure::Requeued:
      return true;
    default:
      return false;
  }
}

bool is_a_failure_of_its_own(Failure failure) {
  return failure != Failure::Ok && failure != Failure::Cancelled &&
         failure != Failure::DependencyFailed;
}

namespace {

constexpr std::array<std::string_view, 8> kTaskStates{
    "waiting", "held", "running", "unknown", "done", "failed", "cancelled", "finishing"};

constexpr std::string_view kNeverStarted = "can never start, because of ";

bool ends_before_the_command(Failure failure) {
  return failure == Failure::StageInFailed || failure == Failure::InputMissing ||
         failure == Failure::InputChanged || failure == Failure::ContainerMissing;
}

}  // namespace

std::string_view to_string(TaskState state) {
  return kTaskStates[static_cast<std::size_t>(state)];
}

std::optional<TaskState> parse_task_state(std::string_view word) {
  for (std::size_t i = 0; i < kTaskStates.size(); ++i) {
    if (kTaskStates[i] == word) return static_cast<TaskState>(i);
  }
  return std::nullopt;
}

TaskState state_after(Failure failure) {
  if (failure == Failure::Ok) return TaskState::Done;
  return failure == Failure::Cancelled ? TaskState::Cancelled : TaskState::Failed;
}

std::optional<std::int32_t> shell_exit_code(const Outcome& outcome) {
  if (!outcome.started || ends_before_the_command(outcome.failure)) return std::nullopt;
  if (outcome.signal == 0 && outcome.exit_code < 0) return std::nullopt;
  return outcome.signal != 0 ? 128 + outcome.signal : outcome.exit_code;
}

std::string message_of_never_started(std::string_view cause) {
  return std::string(kNeverStarted).append(cause);
}

std::string first_cause(TaskId task, Failure failure, std::string_view message) {
  if (failure == Failure::DependencyFailed && message.starts_with(kNeverStarted)) {
    return std::string(message.substr(kNeverStarted.size()));
  }
  return to_string(task).append(" (").append(to_string(failure)).append(")");
}

}  // namespace hpcbatch
