#include "jobs.hpp"

#include "dialect.hpp"
#include "records.hpp"

#include <hpcbatch/batch_time.hpp>

#include <algorithm>
#include <sstream>
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

}  // namespace

CommandLine list_jobs(const std::string& dialect, const std::vector<std::string>& names) {
  return in_dialect(dialect, kOwnIds + std::string(kList), names);
}

Result<std::vector<BatchJob>> read_jobs(const std::string& prefix, const CommandOutput& output) {
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

CommandLine delete_jobs(const std::string& dialect, const std::vector<std::string>& names) {
  return in_dialect(dialect, kDelete, names);
}

}  // namespace hpcbatch::pbs
