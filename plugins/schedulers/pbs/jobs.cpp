#include "jobs.hpp"

#include "dialect.hpp"
#include "pbs.hpp"
#include "records.hpp"

#include <hpcbatch/batch_time.hpp>

#include <algorithm>
#include <array>
#include <unordered_set>

namespace hpcbatch::pbs {
namespace {

/// OpenPBS may know the batch jobs of thousands of people for weeks: of it only this user's are
/// asked for, those that live, and those names that do not. With `-x`, without which a batch job
/// that ends between the two questions cuts the listing short. A server that keeps no history
/// answers `-x` with nothing and success, and of several exit codes qstat tells the last: each
/// number must be listed, or be unknown (153) when it is asked for alone.
/// Torque shows ended ones for `keep_completed`, and SLURM's qstat says 153 where there is none.
///
/// Records of others are never read: a value, such as that of a variable, is printed with its line
/// ends, and so may hold a whole record.  Where one of our own user's does, which shows in their
/// number, each is asked for alone, and ends where the next begins.
constexpr const char* kList = R"sh(
user=$(id -un) || exit
ids=$(own_ids) || exit
ask() {
  shown=
  if [ "$dialect" = openpbs ]; then shown=$(qstat -x -f "$@" 2>/dev/null); code=$?; fi
  [ -n "$shown" ] || { shown=$(qstat -f "$@"); code=$?; }
  # A signal cuts it anywhere; what PBS itself says begins at 153.
  [ "$code" -le 128 ] || [ "$code" -ge 153 ] || exit "$code"
}
heads() { printf '%s\n' "$shown" | grep -c '^Job Id:'; }
show() {
  [ $# -gt 0 ] || return 0
  ask "$@"
  all=$shown
  is_one_by_one=
  if [ "$(heads)" -gt $# ]; then is_one_by_one=1; all=; fi
  for id in "$@"; do
    [ -n "$is_one_by_one" ] || case "$all
" in *"Job Id:"[!0-9]"$id
"*|*"Job Id:"[!0-9]"$id."*) continue ;; esac
    ask "$id"
    case $code in 0|153) ;; *) echo "qstat says nothing of $id" >&2; exit "$code" ;; esac
    all="$all

$(printf '%s\n' "$shown" | awk '/^Job Id:/ && count++ { exit } { print }')"
  done
  printf '%s\n' "$all"
}
jobs=$(show $ids) || exit
printf '%s\n' "$jobs"
if [ "$dialect" = openpbs ]; then
  ids=
  for name in "$@"; do
    case "$jobs
" in *"Job_Name = $name
"*) continue ;; esac
    ended=$(qselect -x -u "$user" -N "$name") || exit
    ids="$ids $ended"
  done
  show $ids
fi
echo "hbend $user"
)sh";

Error no_listing(const std::string& why) {
  return {Error::Kind::Transient, "cannot list the batch jobs of PBS: " + why};
}

/// The text before the mark at the end and the user named there; an error where it is not whole.
Result<std::pair<std::string, std::string>> whole(const std::string& text) {
  constexpr std::string_view kEnd = "hbend ";
  const auto last = text.find_last_not_of('\n');
  const auto begin = last == std::string::npos ? 0 : text.rfind('\n', last) + 1;
  if (text.compare(begin, kEnd.size(), kEnd) != 0) return no_listing("half an answer");
  const auto user = begin + kEnd.size();
  return std::pair{text.substr(0, begin), text.substr(user, last + 1 - user)};
}

Result<BatchJob> read_job(const Record& record, std::string number, NodeNames& nodes) {
  if (record.value("job_state").empty()) return no_listing("no state of batch job " + number);
  const Meaning meaning = meaning_of(record);
  BatchJob job{.name = std::string(record.value("Job_Name")),
               .number = std::move(number),
               .state = meaning.state,
               .cause = meaning.cause,
               .reason = std::string(record.value("comment"))};
  job.nodes = nodes.of(record.value("exec_host"));
  const auto asked = pbs_time(record.value("Resource_List.walltime"));
  const auto used = pbs_time(record.value("resources_used.walltime"));
  if (job.state == BatchState::Running && asked && used)
    job.time_left = std::max(*asked - *used, std::chrono::seconds(0));
  const bool is_torque = !record.value("exit_status").empty();
  const std::string_view status = record.value(is_torque ? "exit_status" : "Exit_status");
  if (job.reason.empty() && job.state == BatchState::Ended && !status.empty())
    job.reason = "Exit_status " + std::string(status);
  return job;
}

/// qdel takes numbers, and each name is looked up even where one is known: after an unclear submit
/// there may be two batch jobs of one name. A name nobody knows is no error, nor is one that ends
/// meanwhile; SLURM's qdel has a code for those and says nothing.  The batch system compares names:
/// what others call theirs is not read.
constexpr const char* kDelete = R"sh(
user=$(id -un) || exit
set -f  # an array is called 12[]
failed=0
numbers() {
  case $dialect in
  slurm-torque) squeue --me --all --noheader --name="$1" --format=%A ;;
  *) qselect -u "$user" -N "$1" ;;
  esac
}
for name in "$@"; do
  for number in $(numbers "$name" || echo failed); do
    if [ "$number" = failed ]; then failed=1; continue; fi
    said=$(qdel "$number" 2>&1) && continue
    case $said in
    ''|*'Unknown Job'*|*'has finished'*|*'invalid for state'*) ;;
    *) printf '%s\n' "$said" >&2; failed=1 ;;
    esac
  done
done
exit $failed
)sh";

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

/// With those that have ended.
CommandLine Pbs::poll(const std::string&, const std::vector<std::string>& names) const {
  return in_dialect(settings_.dialect, kOwnIds + std::string(kList), names);
}

Result<std::vector<BatchJob>> Pbs::read_poll(const std::string& prefix,
                                             const CommandOutput& output) const {
  if (output.timed_out) return no_listing("qstat gave no answer in time");
  if (output.exit_code != 0) {
    return no_listing("exit " + std::to_string(output.exit_code) + ": " +
                      one_line(output.standard_error));
  }
  const auto text = whole(output.standard_output);
  if (!text) return text.error();
  std::vector<BatchJob> jobs;
  NodeNames nodes;
  for (const Record& record : read_records(text->first, Repeated::FirstCounts)) {
    std::string number = after(record.head, "Job Id:");
    if (number.empty() || !record.value("Job_Name").starts_with(prefix)) continue;
    const std::string_view owner = record.value("Job_Owner");
    if (!owner.empty() && owner.substr(0, owner.find('@')) != text->second) continue;
    auto job = read_job(record, std::move(number), nodes);
    if (!job) return job.error();
    jobs.push_back(std::move(*job));
  }
  return jobs;
}

std::vector<std::string> NodeNames::of(std::string_view exec_host) {
  std::vector<std::string> names;
  std::unordered_set<std::string_view> known;
  while (!exec_host.empty() && left_ > 0 && names.size() < kMostNodesOfAJob) {
    const auto plus = std::min(exec_host.find('+'), exec_host.size());
    const std::string_view slot = exec_host.substr(0, plus);
    const std::string_view name = slot.substr(0, slot.find('/'));
    if (!name.empty() && name.size() <= kLongestNodeName && known.insert(name).second) {
      names.emplace_back(name);
      --left_;
    }
    exec_host.remove_prefix(std::min(plus + 1, exec_host.size()));
  }
  return names;
}

CommandLine Pbs::cancel(const std::vector<std::string>& names,
                        const std::vector<std::string>&) const {
  return in_dialect(settings_.dialect, kDelete, names);
}

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
