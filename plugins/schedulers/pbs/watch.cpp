#include "dialect.hpp"
#include "jobs.hpp"
#include "pbs.hpp"
#include "records.hpp"
#include "watched_jobs.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace hpcbatch::pbs {
namespace {

/// Records are long, most of one is the submitter's environment: awk keeps what is asked of them,
/// of what waits in state Q only the first, and a last word, which tells whether all came.
///
/// OpenPBS lists an array as one; its members that run are known from the nodes that they have, and
/// are asked for by number (with `-x`, see jobs.cpp; a server without history answers that with
/// nothing).  All members of all arrays, as `-t` shows them, would be what no server likes to be
/// asked for.  Torque's are batch jobs like others, and only `-t` shows them.
///
/// Names are asked for of this user's own alone.  A record of somebody else's may hold lines of any
/// kind (a variable's value has its line ends); it can spoil what we expect of the queue, and no more.
constexpr const char* kLook = R"sh(
if [ "$dialect" = slurm-torque ]; then
  echo "SLURM's qstat does not say since when a batch job runs; the scheduler 'slurm' can look at this queue" >&2
  exit 1
fi
LC_ALL=C; export LC_ALL
queues=$(qstat -Q -f) || exit
nodes=$(pbsnodes -a) || exit
members=
[ "$dialect" != openpbs ] || members=$(printf '%s\n' "$nodes" | awk '{
  while (match($0, /[0-9]+\[[0-9]+\][A-Za-z0-9._-]*/)) {
    id = substr($0, RSTART, RLENGTH)
    $0 = substr($0, RSTART + RLENGTH)
    if (!seen[id]++ && ++count <= 2000) print id
  }
}')
printf 'hbnow %s\n\n%s\n\n' "$(date '+%a %b %d %H:%M:%S %Y')" "$queues"
qstat -B -f 2>/dev/null
user=$(id -un) && own=$(own_ids 2>/dev/null) || own=
[ -z "$own" ] || qstat -f $own 2>/dev/null | awk '
  /^Job Id:/ { sub(/^Job Id:[ \t]*/, ""); print "\nOwn: " $0; named = 0 }
  /^[ \t]+Job_Name = / && !named++'
printf '\nhbnodes\n'
printf '%s\n' "$nodes" | awk '
  /^[^ \t]/ { print; kept = 0; next }
  /^ +[A-Za-z]/ { kept = $1 ~ /^(state|np|pcpus|queue|partition|properties|jobs|sharing|resources_available[.].*|resources_assigned[.](ncpus|mem|ngpus))$/ }
  kept' || exit
printf '\nhbjobs\n'
all() {
  if [ "$dialect" != openpbs ]; then qstat -t -f; return; fi
  if [ -n "$members" ]; then
    shown=$(qstat -x -f $members 2>/dev/null)
    [ -n "$shown" ] || shown=$(qstat -f $members 2>/dev/null)
    printf '%s\n' "$shown"
  fi
  qstat -f
}
{ all; echo "hbcode $?"; } | awk '
  function flush() {
    if (state ~ /^[REBSU]$/ ? ++begun <= 20000 : state == "Q" && ++waiting <= 5000) print record
    record = state = ""
    kept = 0
  }
  /^Job Id:/ { flush(); record = $0; next }
  /^hbcode / { code = $2 }
  /^[^ \t]/ { kept = 0; next }
  /^ +[A-Za-z_.]+ = / {
    kept = $1 ~ /^(Job_Owner|job_state|queue|exec_host|Priority|stime|start_time|eligible_time|comment|array_state_count|Resource_List[.](mem|ncpus|ngpus|nodect|nodes|place|procs|walltime)|resources_used[.]walltime)$/
    if ($1 == "job_state") state = $3
  }
  kept && length(record) < 65536 { record = record "\n" $0 }
  END { flush(); print (code == "0" ? "hbend" : "hbfailed") }' || exit
)sh";

// More has neither; what says so is damaged.
constexpr long kMostGpusOfANode = 1024, kMostGpusOfAJob = 1'000'000;

Error no_look(const std::string& why) {
  return {Error::Kind::Transient, "cannot look at the queue of PBS: " + why};
}

struct Answer {
  std::vector<Record> things;
  std::vector<ComputeNode> nodes;
  std::vector<Record> jobs;
};

/// Nothing where it is not whole.
std::optional<Answer> answer_in(const std::string& text) {
  constexpr std::string_view kNodes = "\nhbnodes\n";
  constexpr std::string_view kJobs = "\nhbjobs\n";
  constexpr std::string_view kEnd = "\nhbend\n";
  const auto nodes = text.find(kNodes);
  const auto jobs = text.find(kJobs, std::min(nodes, text.size()));
  if (jobs == std::string::npos || !text.ends_with(kEnd)) return std::nullopt;
  const auto between = [&](std::size_t begin, std::size_t end) {
    return text.substr(begin, std::max(begin, end) - begin);
  };
  return Answer{read_records(text.substr(0, nodes + 1), Repeated::IsAList),
                compute_nodes(between(nodes + kNodes.size(), jobs + 1)),
                read_records(between(jobs + kJobs.size(), text.size() - kEnd.size() + 1),
                             Repeated::FirstCounts)};
}

/// By number.
Names own_names(const std::vector<Record>& things) {
  Names names;
  for (const Record& thing : things) {
    if (std::string number = after(thing.head, "Own:"); !number.empty())
      names.try_emplace(std::move(number), thing.value("Job_Name"));
  }
  return names;
}

std::optional<std::chrono::sys_seconds> moment_of(const std::vector<Record>& things) {
  for (const Record& thing : things) {
    if (const std::string now = after(thing.head, "hbnow"); !now.empty()) return read_moment(now);
  }
  return std::nullopt;
}

/// Amounts of OpenPBS alone: Torque says of no node how much of its memory is given.
RoomOfNode room_of_node(const ComputeNode& node) {
  RoomOfNode room{
      .name = node.name, .is_closed = !node.is_up, .cpus = node.cpus, .busy_cpus = node.busy_cpus};
  const auto bytes = [&](const char* name) {
    return static_cast<double>(read_size(node.record.value(name)).value_or(0));
  };
  const auto count = [&](const char* name) {
    return static_cast<double>(
        std::clamp(read_number(node.record.value(name)).value_or(0), 0L, kMostGpusOfANode));
  };
  if (!node.record.value("resources_assigned.mem").empty()) {
    room.memory = bytes("resources_available.mem");
    room.busy_memory = std::min(room.memory, bytes("resources_assigned.mem"));
  }
  if (const double gpus = count("resources_available.ngpus"); gpus > 0) {
    room.gpus[""] = gpus;
    room.busy_gpus[""] = std::min(gpus, count("resources_assigned.ngpus"));
  }
  if (node.busy_cpus < node.cpus || !node.is_taken_whole) return room;
  room.busy_memory = room.memory;
  room.busy_gpus = room.gpus;
  return room;
}

}  // namespace

/// How full its nodes are, by the same answer.
WatchedRoom Pbs::read_room(const CommandOutput& output) const {
  WatchedRoom room;
  const auto answer = answer_in(output.standard_output);
  if (!answer) return room;
  for (const ComputeNode& node : answer->nodes) room.nodes.push_back(room_of_node(node));
  for (const Record& record : answer->jobs) {
    RoomOfJob job;
    job.memory = static_cast<double>(read_size(record.value("Resource_List.mem")).value_or(0));
    const long gpus = read_number(record.value("Resource_List.ngpus")).value_or(0);
    if (gpus > 0) job.gpus[""] = static_cast<double>(std::min(gpus, kMostGpusOfAJob));
    const std::string number = after(record.head, "Job Id:");
    if (!number.empty()) room.jobs.try_emplace(number, std::move(job));
  }
  for (const Record& thing : answer->things) {
    const std::string name = after(thing.head, "Queue:");
    if (!name.empty() && thing.value("started") == "False")
      room.closed_partitions[name] = "not started";
  }
  return room;
}

CommandLine Pbs::watch_queue() const {
  return in_dialect(settings_.dialect, kOwnIds + std::string(kLook), {});
}

Result<WatchedQueue> Pbs::read_queue(const CommandOutput& output) const {
  if (output.timed_out) return no_look("qstat gave no answer in time");
  if (output.exit_code != 0) {
    return no_look("exit " + std::to_string(output.exit_code) + ": " +
                   one_line(output.standard_error));
  }
  if (output.standard_output.ends_with("\nhbfailed\n"))
    return no_look("qstat listed no batch jobs: " + one_line(output.standard_error));
  const auto answer = answer_in(output.standard_output);
  if (!answer) return no_look("half an answer");
  if (std::none_of(answer->nodes.begin(), answer->nodes.end(),
                   [](const ComputeNode& node) { return node.is_up && node.cpus > 0; }))
    return no_look("pbsnodes shows no node that is up");
  QueuesToWatch queues = queues_to_watch(answer->things, answer->nodes);
  if (queues.partitions.empty()) return no_look("qstat names no queue");
  auto listed = listed_jobs(answer->jobs, own_names(answer->things), queues, answer->nodes,
                            moment_of(answer->things));
  if (!listed) return no_look(listed.error().text);
  if (queues.are_others_hidden && listed->waiting < kMostThatWait &&
      queues.waiting > static_cast<long>(listed->waiting)) {
    return no_look("it hides others' batch jobs (query_other_jobs of its server is not True): " +
                   std::to_string(queues.waiting) + " wait, and " +
                   std::to_string(listed->waiting) + " are shown");
  }
  return WatchedQueue{std::move(listed->jobs), std::move(queues.partitions)};
}

}  // namespace hpcbatch::pbs
