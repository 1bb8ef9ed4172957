#include "model/failure.hpp"

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
