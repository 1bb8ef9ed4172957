#include "states.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace hpcbatch::slurm {
namespace {

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

constexpr std::array<std::string_view, 12> kNeverStarts{
    "PartitionTimeLimit", "PartitionNodeLimit",       "PartitionConfig", "BadConstraints",
    "InvalidAccount",     "DependencyNeverSatisfied", "InvalidQOS",      "QOSNotAllowed",
    "AccountNotAllowed",  "QOSMinCpuNotSatisfied",    "QOSMinGRES",      "QOSMinMemory"};
constexpr std::array<std::string_view, 4> kHeld{"JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue",
                                                "launch failed requeued held"};
constexpr std::array<std::string_view, 7> kOutage{
    "PartitionDown", "PartitionInactive", "NodeDown",          "FrontEndDown",
    "Maintenance",   "Reservation",       "ReservationDeleted"};

BatchState pending(std::string_view reason) {
  if (is_one_of(reason, kNeverStarts)) return BatchState::NeverStarts;
  if (is_one_of(reason, kHeld)) return BatchState::Held;
  if (is_one_of(reason, kOutage) || has(reason, "ReqNodeNotAvail") ||
      has(reason, "DOWN, DRAINED")) {
    return BatchState::Outage;
  }
  const bool of_account =
      reason.starts_with("QOS") || reason.starts_with("Assoc") || reason.starts_with("Max");
  if (!of_account) return BatchState::Queued;
  // What one batch job alone may not have, or an account has used up, waiting does not bring.
  if (has(reason, "PerJob") || has(reason, "PerNode")) return BatchState::NeverStarts;
  if (has(reason, "Minutes") && !has(reason, "RunMinutes")) return BatchState::NeverStarts;
  return BatchState::LimitReached;
}

}  // namespace

Meaning meaning_of(std::string_view state, std::string_view reason) {
  const auto ended = [](EndCause cause) { return Meaning{BatchState::Ended, cause}; };
  if (state == "PENDING") return {pending(reason), {}};
  if (state == "CONFIGURING" || state == "REQUEUED" || state == "REQUEUE_FED")
    return {BatchState::Queued, {}};
  if (state == "REQUEUE_HOLD" || state == "RESV_DEL_HOLD" || state == "SPECIAL_EXIT")
    return {BatchState::Held, {}};
  if (state == "SUSPENDED" || state == "STOPPED") return {BatchState::Suspended, {}};
  if (state == "COMPLETED") return ended(EndCause::Completed);
  if (state == "TIMEOUT" || state == "DEADLINE") return ended(EndCause::Timeout);
  if (state == "PREEMPTED") return ended(EndCause::Preempted);
  if (state == "OUT_OF_MEMORY") return ended(EndCause::OutOfMemory);
  if (state.starts_with("CANCELLED")) return ended(EndCause::Cancelled);
  if (state == "NODE_FAIL" || state == "BOOT_FAIL" || state == "LAUNCH_FAILED" ||
      state == "RECONFIG_FAIL") {
    return ended(EndCause::NodeFailed);
  }
  if (state == "FAILED") {
    const bool never_ran = reason == "JobLaunchFailure" || reason == "BadConstraints";
    return ended(never_ran ? EndCause::LaunchFailed : EndCause::Failed);
  }
  // RUNNING, COMPLETING (its processes may still be there), and whatever a later release invents:
  // what is not known to have ended has not ended.
  return {BatchState::Running, {}};
}

}  // namespace hpcbatch::slurm
