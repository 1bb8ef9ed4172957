#include "listing.hpp"

#include "answer_lines.hpp"
#include "slurm.hpp"

#include <hpcbatch/batch_time.hpp>
#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace hpcbatch::slurm {
namespace {

/// squeue lists all of this user's at once, ended ones for MinJobAge (300 s) after their end.  Only
/// a name that it does not know is looked up in the accounting, if there is any, and only for how
/// it ended: its view of what runs is older than squeue's, and a record whose end it missed runs
/// there for ever.  `--all`: partitions may be hidden from those who use them.  `--user`: sacct
/// shows root everybody's, and a name of ours can be read by all and given to any batch job.
constexpr const char* kList = R"sh(
SQUEUE_FORMAT="${mark}job|%i|%T|%L|%N|%r$mark%j$mark"; export SQUEUE_FORMAT
jobs=$(squeue --me --all --noheader --states=all) || exit
printf 'hbmark %s\n%s\n' "$mark" "$jobs"
unknown=
for name in "$@"; do
  case $jobs in *"$mark$name$mark"*) ;; *) unknown="$unknown,$name" ;; esac
done
if [ -n "$unknown" ] && command -v sacct >/dev/null 2>&1; then
  timeout 10 sacct --noheader --parsable2 --allocations --starttime=now-7days --user="$(id -u)" --name="${unknown#,}" \
    --format=jobid,state,timelimit,nodelist,reason,jobname 2>/dev/null | sed "s/^/${mark}acct|/; s/|\([^|]*\)\$/$mark\1$mark/"
fi
printf '%send\n' "$mark"
)sh";

bool is_state(std::string_view word) {
  return !word.empty() &&
         word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string_view::npos;
}

Error distrust(const std::string& why) {
  return {Error::Kind::Transient, "cannot list the batch jobs of SLURM: " + why};
}

/// The part of a range list inside brackets: "1-2,07".  Not more than `most` names in all.
bool add_ranges(std::string_view head, std::string_view ranges, std::string_view tail,
                std::size_t most, std::vector<std::string>& names) {
  if (head.size() + tail.size() > kLongestNodeName) return false;
  while (!ranges.empty()) {
    const auto comma = std::min(ranges.find(','), ranges.size());
    const std::string_view range = ranges.substr(0, comma);
    const auto dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
    const auto from = number_in<unsigned long>(first), to = number_in<unsigned long>(last);
    if (first.size() > kLongestNodeName || !from || !to || *to < *from ||
        *to - *from >= most - std::min(names.size(), most))
      return false;
    for (unsigned long i = 0; i <= *to - *from; ++i) {
      std::string number = std::to_string(*from + i);
      if (number.size() < first.size()) number.insert(0, first.size() - number.size(), '0');
      names.push_back(std::string(head) + number + std::string(tail));
    }
    ranges.remove_prefix(std::min(comma + 1, ranges.size()));
  }
  return true;
}

/// Nothing where the list cannot be taken apart, or means more than `most`.
std::optional<std::vector<std::string>> names_in(std::string_view list, std::size_t most) {
  std::vector<std::string> names;
  std::size_t begin = 0;
  while (begin < list.size()) {
    if (names.size() >= most) return std::nullopt;
    const auto open = list.find_first_of(",[", begin);
    if (open == std::string_view::npos || list[open] == ',') {
      const auto comma = std::min(open, list.size());
      names.emplace_back(list.substr(begin, comma - begin));
      begin = comma + 1;
      continue;
    }
    const auto close = list.find(']', open);
    if (close == std::string_view::npos) return std::nullopt;
    const auto end = std::min(list.find(',', close), list.size());
    if (!add_ranges(list.substr(begin, open - begin), list.substr(open + 1, close - open - 1),
                    list.substr(close + 1, end - close - 1), most, names))
      return std::nullopt;
    begin = end + 1;
  }
  return names;
}

/// "job|17|RUNNING|1:00:00|n[1-2]|None" of squeue, "acct|..." of sacct.  Nothing where it says
/// nothing of how the batch job is.
Result<std::optional<BatchJob>> job_in(const MarkedRecord& record, NodeLists& lists) {
  const auto parts = split(record.head, '|');
  const bool is_accounting = parts.front() == "acct";
  if (parts.size() != 6 || (parts[0] != "job" && !is_accounting))
    return distrust("a line that is no batch job: " + one_line(std::string(record.head)));
  const std::string state = parts[2].substr(0, parts[2].find(' '));  // "CANCELLED by 0"
  if (!is_state(state))
    return distrust("no state of a batch job: " + one_line(std::string(record.head)));
  // Of a federation: another cluster has taken this batch job, under the same name.
  if (state == "REVOKED") return std::optional<BatchJob>{};
  const Meaning meaning = meaning_of(state, parts[5]);
  if (is_accounting && meaning.state != BatchState::Ended) return std::optional<BatchJob>{};
  BatchJob job{.name = std::string(record.free),
               .number = parts[1],
               .state = meaning.state,
               .cause = meaning.cause,
               .reason = parts[5].empty() || parts[5] == "None" ? state : parts[5]};
  if (job.state == BatchState::Running) job.time_left = slurm_time(parts[3]);
  if (parts[4] != "None assigned") job.nodes = lists.names(parts[4]);
  return std::optional(std::move(job));
}

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

CommandLine Slurm::poll(const std::string&, const std::vector<std::string>& names) const {
  CommandLine command{.argv = {"sh", "-c", std::string(kChooseMark) + kList, "sh"}};
  command.argv.insert(command.argv.end(), names.begin(), names.end());
  return command;
}

Result<std::vector<BatchJob>> Slurm::read_poll(const std::string& prefix,
                                               const CommandOutput& output) const {
  if (output.timed_out) return distrust("squeue gave no answer in time");
  if (output.exit_code != 0) {
    return distrust("squeue exit " + std::to_string(output.exit_code) + ": " +
                    one_line(output.standard_error));
  }
  const auto found = read_marked(output.standard_output);
  if (!found) return distrust("half an answer: " + one_line(output.standard_output));
  std::vector<BatchJob> jobs;
  NodeLists lists;
  for (const MarkedRecord& record : found->records) {
    if (!record.free.starts_with(prefix)) continue;
    auto job = job_in(record, lists);
    if (!job) return job.error();
    if (*job) jobs.push_back(std::move(**job));
  }
  return jobs;
}

std::vector<std::string> NodeLists::names(std::string_view list) {
  auto names = names_in(list, std::min(kMostNodesOfAJob, left_));
  if (!names) return {std::string(list)};
  left_ -= std::min(left_, names->size());
  return std::move(*names);
}

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
