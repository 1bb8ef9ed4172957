#include "jobs.hpp"

#include <hpcbatch/batch_time.hpp>

#include <algorithm>
#include <array>

namespace hpcbatch::pbs {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// "Insufficient amount of resource: ncpus (R: 4 A: 0 T: 0)": no node that counts has any.
bool offers_nothing_now(std::string_view comment) {
  for (const std::string_view resource : {"resource: ncpus ", "resource: mem "}) {
    const auto at = comment.find(resource);
    if (at == std::string_view::npos) continue;
    const std::string_view amounts = comment.substr(at, comment.find(')', at) - at);
    if (amounts.ends_with("T: 0") || amounts.ends_with("T: 0kb") || amounts.ends_with("T: 0b"))
      return true;
  }
  return false;
}

/// "Node is in an ineligible state: down"
bool is_for_lack_of_nodes(std::string_view comment) {
  constexpr std::string_view kState = "ineligible state:";
  const auto at = comment.find(kState);
  if (at == std::string_view::npos) return false;
  const std::string_view state = comment.substr(at + kState.size());
  return has(state, "down") || has(state, "offline") || has(state, "stale") ||
         has(state, "unknown");
}

/// SLURM's qstat, which names no server, says of an end that there was one and nothing else.
bool has_started(const Record& job) {
  return job.value("server").empty() || !job.value("exec_host").empty() ||
         !job.value("stime").empty() || !job.value("start_time").empty();
}

bool used_its_walltime(const Record& job, std::string_view comment) {
  if (has(comment, "exceeded resource walltime")) return true;
  const auto used = pbs_time(job.value("resources_used.walltime"));
  const auto asked = pbs_time(job.value("Resource_List.walltime"));
  return used && asked && asked->count() > 0 && *used >= *asked;
}

/// Negative ones are not the script's: the batch system ended it, or could not begin it. OpenPBS
/// and Torque have given -10 and lower to different things.
EndCause ended_by_system(long status, bool is_torque) {
  constexpr std::array kNodeFailed{-4L, -5L, -6L, -14L, -20L};
  if (is_torque && status == -10) return EndCause::OutOfMemory;
  if (is_torque && status == -11) return EndCause::Timeout;
  if (is_torque && status == -12) return EndCause::Failed;  // its time on the processors
  if (status == -26 || status == -27) return EndCause::OutOfMemory;
  if (status == -29) return EndCause::Timeout;
  if (status <= -24 && status >= -28) return EndCause::Failed;  // other limits
  if (!is_torque && (status == -11 || status == -16 || status == -18 || status == -32))
    return EndCause::NodeFailed;
  if (!is_torque && status == -31) return EndCause::OutOfMemory;
  if (std::find(kNodeFailed.begin(), kNodeFailed.end(), status) != kNodeFailed.end())
    return EndCause::NodeFailed;
  return EndCause::LaunchFailed;
}

EndCause end_of(const Record& job) {
  const std::string_view comment = job.value("comment");
  const bool is_torque = !job.value("exit_status").empty();
  const auto status = read_number(job.value(is_torque ? "exit_status" : "Exit_status"));
  if (has(comment, "reempt")) return EndCause::Preempted;
  if (status && *status < 0) return ended_by_system(*status, is_torque);
  // A pilot that is told to end does so with a code of its own; only here stands who told it.
  constexpr std::string_view kTerminated = "91";
  if (job.value("substate") == kTerminated || has(comment, "terminated by"))
    return EndCause::Cancelled;
  if (!status) return has_started(job) ? EndCause::None : EndCause::Cancelled;
  if (*status == 0) return EndCause::Completed;
  // 256 and the signal in OpenPBS and most Torques, else as a shell says it.
  constexpr std::array kBySignal{256 + 15, 256 + 9, 128 + 15, 128 + 9};
  if (std::find(kBySignal.begin(), kBySignal.end(), *status) == kBySignal.end())
    return EndCause::Failed;
  if (used_its_walltime(job, comment)) return EndCause::Timeout;
  return *status % 128 == 15 ? EndCause::Cancelled : EndCause::Failed;
}

}  // namespace

BatchState state_by_comment(std::string_view comment) {
  // A node that is away, or has not reported yet, offers nothing at all, and the scheduler says
  // what holds for this moment.
  if (has(comment, "Can Never Run"))
    return offers_nothing_now(comment) ? BatchState::Outage : BatchState::NeverStarts;
  if (has(comment, "limit")) return BatchState::LimitReached;
  if (has(comment, "ueue not started") || has(comment, "ueue is not started") ||
      has(comment, "odes are down") || has(comment, "odes are offline") ||
      is_for_lack_of_nodes(comment)) {
    return BatchState::Outage;
  }
  return BatchState::Queued;
}

Meaning meaning_of(const Record& job) {
  const std::string_view state = job.value("job_state");
  switch (state.size() == 1 ? state.front() : '?') {
    case 'Q':
      return {state_by_comment(job.value("comment")), {}};
    case 'W':  // for its time
    case 'T':  // on its way to another queue or server
      return {BatchState::Queued, {}};
    case 'H':
      return {BatchState::Held, {}};
    case 'S':
    case 'U':  // somebody works at the workstation
      return {BatchState::Suspended, {}};
    case 'C':
    case 'F':
    case 'X':
      return {BatchState::Ended, end_of(job)};
    default:
      // R, E (its processes may still be there), B, and whatever a later release invents: what is
      // not known to have ended has not ended.
      return {BatchState::Running, {}};
  }
}

}  // namespace hpcbatch::pbs
