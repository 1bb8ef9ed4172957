#include "model/failure.hpp"

#include <array>

namespace hpcbatch {
namespace {

constexpr std::array<std::string_view, kFailures> kFailureWords{"ok",
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
                                                                "workspace_lost"};

}  // namespace

std::string_view to_string(Failure failure) {
  return kFailureWords[static_cast<std::size_t>(failure)];
}

std::optional<Failure> parse_failure(std::string_view word) {
  for (std::size_t i = 0; i < kFailureWords.size(); ++i) {
    if (kFailureWords[i] == word) return static_cast<Failure>(i);
  }
  return std::nullopt;
}

bool is_not_the_tasks_fault(Failure failure) {
  switch (failure) {
    case Failure::GpuError:
    case Failure::NodeLost:
    case Failure::ServiceLost:
    case Failure::PilotWalltime:
    case Failure::PilotPreempted:
    case Failure::PilotKilled:
    case Failure::WorkspaceLost:
      return true;
    default:
      return false;
  }
}

bool is_a_failure_of_its_own(Failure failure) {
  return failure != Failure::Ok && failure != Failure::Cancelled &&
         failure != Failure::DependencyFailed;
}

}  // namespace hpcbatch
