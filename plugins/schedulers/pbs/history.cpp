#include "dialect.hpp"
#include "pbs.hpp"
#include "records.hpp"

#include <hpcbatch/batch_time.hpp>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace hpcbatch::pbs {
namespace {

using std::chrono::seconds;

/// One more is listed, which tells that there are more.
constexpr std::size_t kMostListed = 10'000;

/// Who ended has been changed last when he ended; who has not ended may have been changed long ago,
/// and is asked for by himself.  The server looks through all that it has for each selection, and
/// prints records for those alone that it is asked for; awk keeps what is asked of them.  In and
/// out, moments are UTC (qselect(1B), -t; both commands go by TZ).
constexpr const char* kPast = R"sh(
if [ "$dialect" != openpbs ]; then echo hbnone; exit 0; fi
set -f  # an array is called 12[]
LC_ALL=C TZ=UTC0; export LC_ALL TZ
from=$(date -d "@$1" +%Y%m%d%H%M.%S) && until=$(date -d "@$2" +%Y%m%d%H%M.%S) || exit
said=$(timeout 15 qselect -H -tm.ge."$from" -tq.lt."$until" 2>&1) || { printf '%s\n' "${said:-qselect gave no answer}" >&2; exit 1; }
case $said in *job_history_enable*) echo hbnone; exit 0 ;; esac
open=$(timeout 15 qselect -tq.lt."$until") || exit
ids=$(printf '%s\n%s\n' "$said" "$open" | awk '/^[0-9]/ && count < 10001 { count++; print }')
[ -n "$ids" ] || { echo "hbasked 0"; echo hbend; exit 0; }
printf 'hbasked %s\n' "$(printf '%s\n' "$ids" | wc -l)"
printf '%s\n' "$ids" | {
  timeout 25 xargs -n 200 qstat -x -f 2>/dev/null
  [ $? -ne 124 ] || echo hbcut
} | awk '
  /^hbcut$/ { print; exit }
  /^Job Id:/ { kept = 1 }
  /^ +[A-Za-z_.]+ = / {
    kept = $1 ~ /^(Job_Owner|job_state|queue|qtime|etime|stime|obittime|mtime|Resource_List[.](ncpus|nodect|nodes|procs|walltime|ngpus|naccelerators)|resources_used[.]walltime)$/
  }
  kept && length($0) < 4096'
echo hbend
)sh";

std::optional<seconds> moment_in(const Record& job, const char* name) {
  const auto moment = read_moment(job.value(name));
  return moment ? std::optional(moment->time_since_epoch()) : std::nullopt;
}

/// When it ended: servers before OpenPBS 20 do not keep it, but how long it ran.
std::optional<seconds> ended_at(const Record& job, const std::optional<seconds>& started) {
  if (job.value("job_state") != "F") return std::nullopt;
  if (const auto end = moment_in(job, "obittime")) return end;
  const auto ran = pbs_time(job.value("resources_used.walltime"));
  if (started && ran) return *started + std::min(*ran, kNoLimit);
  return moment_in(job, "mtime");
}

std::optional<PastJob> past_job_of(const Record& job) {
  const std::string_view state = job.value("job_state");
  const auto submitted = moment_in(job, "qtime");
  // Moved to another server: its fate is known there.
  if (!submitted || state.empty() || state == "M") return std::nullopt;
  const std::string_view owner = job.value("Job_Owner");
  PastJob past{.partition = std::string(job.value("queue")),
               .user = std::string(owner.substr(0, owner.find('@'))),
               .cpus = cpus_asked_for(job),
               .gpus = std::max(bounded(read_number(job.value("Resource_List.ngpus"))),
                                bounded(read_number(job.value("Resource_List.naccelerators")))),
               .limit = limit_asked_for(job),
               .submitted = *submitted,
               .eligible = *submitted,
               .started = moment_in(job, "stime"),
               .ended = {}};
  // One that waits again for its start still has the moment of the one before.
  if (state == "Q" || state == "H" || state == "W" || state == "T") past.started.reset();
  past.ended = ended_at(job, past.started);
  const auto eligible = moment_in(job, "etime");
  // What was held all the time has not waited for room.
  if (!eligible && !past.started) return std::nullopt;
  past.eligible = eligible ? *eligible : *past.started;
  return past;
}

}  // namespace

CommandLine Pbs::list_past(seconds from, seconds until) const {
  return in_dialect(settings_.dialect, kPast,
                    {std::to_string(from.count()), std::to_string(until.count())});
}

Result<PastJobs> Pbs::read_past(const CommandOutput& output) const {
  const auto distrust = [](const std::string& why) {
    return Error{Error::Kind::Transient, "cannot list what the server keeps: " + why};
  };
  const std::string& text = output.standard_output;
  if (output.timed_out) return distrust("PBS gave no answer in time");
  if (output.exit_code != 0)
    return distrust("exit " + std::to_string(output.exit_code) + ": " +
                    one_line(output.standard_error));
  if (text == "hbnone\n") {
    return Error{Error::Kind::Rejected,
                 "there is no accounting: the server keeps no batch jobs that have ended "
                 "(job_history_enable of OpenPBS)"};
  }
  constexpr std::string_view kEnd = "hbend\n";
  constexpr std::string_view kAsked = "hbasked ";
  const auto first = text.find('\n');
  const auto asked =
      text.starts_with(kAsked)
          ? read_number(std::string_view(text).substr(kAsked.size(), first - kAsked.size()))
          : std::nullopt;
  if (!asked || *asked < 0 || !text.ends_with(kEnd)) return distrust("half an answer");
  const auto records = read_records(text.substr(first + 1, text.size() - first - 1 - kEnd.size()),
                                    Repeated::FirstCounts);
  const bool ran_out = text.find("\nhbcut\n") != std::string::npos;
  PastJobs found;
  std::size_t answered = 0;
  for (const Record& record : records) {
    if (after(record.head, "Job Id:").empty()) continue;
    if (++answered > kMostListed) break;
    if (auto job = past_job_of(record)) found.jobs.push_back(std::move(*job));
  }
  // The oldest may be forgotten between the two questions, and no more.
  if (!ran_out && 2 * answered < static_cast<std::size_t>(*asked))
    return distrust("qstat told " + std::to_string(answered) + " of the " + std::to_string(*asked) +
                    " batch jobs that qselect listed");
  found.is_cut = static_cast<std::size_t>(*asked) > kMostListed || ran_out;
  if (ran_out && !found.jobs.empty()) found.jobs.pop_back();  // the last may be half of one
  return found;
}

}  // namespace hpcbatch::pbs
