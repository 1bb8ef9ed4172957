#include "answer_lines.hpp"
#include "listing.hpp"
#include "slurm.hpp"

#include <hpcbatch/batch_time.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>
#include <unordered_map>

namespace hpcbatch::slurm {
namespace {

/// What waits is listed by falling priority, arrays task by task, and no more of it than can matter
/// for what starts within days.  Names are asked for of this user's own alone: what others call
/// theirs is none of our business, and a name may hold lines of any kind (squeue(1)).  All else here
/// is SLURM's own word.
constexpr const char* kShown = R"sh(
own=$(SQUEUE_FORMAT="$mark%A$mark%j$mark" squeue --me --all --local --noheader --states=pending,running,suspended,completing,configuring) || exit
nodes=$(sinfo --all --noheader --exact '--format=hbpart|%P|%C|%N|%a') || exit
export SLURM_TIME_FORMAT=%s
now=$(date +%s)
runs=$(squeue --all --local --noheader --states=running,suspended,completing,configuring '--format=hbrun|%A|%u|%P|%C|%l|%M|%N|%V') || exit
printf 'hbmark %s\n%s\n%send\n' "$mark" "$own" "$mark"
printf '%s\n' "hbnow|$now" "$nodes" "$runs"
)sh";
constexpr const char* kWaiting = R"sh({
  squeue --all --local --noheader --array --states=pending --sort=-p,i '--format=hbwait|%i|%u|%P|%C|%l|%V|%r' || echo hbfailed
} | head -n 5000
echo hbend
)sh";

// Lines of jobs are of fixed widths, which squeue keeps to.
constexpr const char* kRoomLines = R"sh(
scontrol -d -o show node 2>/dev/null | sed 's/^/hbnode|/'
scontrol -o show reservation 2>/dev/null | sed -n 's/^ReservationName=/hbresv|&/p'
squeue --all --local --noheader --array --states=pending,running,suspended,completing,configuring -O 'JobID:22,JobArrayID:40,NumNodes:10,tres-alloc:200,tres-per-node:100' 2>/dev/null | head -n 20000 | sed 's/^/hbroom|/;s/  */ /g'
)sh";

/// A limit that is none (UNLIMITED, of a partition without one).
constexpr std::chrono::seconds kNoLimit = std::chrono::hours{24 * 365};

/// Reasons of those that start as soon as there is room for them (squeue(1), JOB REASON CODES).
constexpr std::array kMayStart{"None", "Priority", "Resources", "(null)", ""};

/// Of a count such as 12 or, as some versions write it, 12K.
double cpu_count(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return 0;
  const bool is_thousands = end != text.data() + text.size() && *end == 'K';
  return is_thousands ? value * 1024 : value;
}

/// Partitions by their names while they are read.
using Places = std::unordered_map<std::string, std::size_t>;

std::vector<std::string> node_list(const std::string& text, NodeLists& lists) {
  return text.empty() || text == "(null)" ? std::vector<std::string>{} : lists.names(text);
}

/// "hbpart|name*|allocated/idle/other/total|nodes".
void add_partition(const std::vector<std::string>& parts, Places& places, NodeLists& lists,
                   std::vector<WatchedPartition>& all) {
  const bool is_default = parts[1].ends_with('*');
  const std::string name = parts[1].substr(0, parts[1].size() - (is_default ? 1 : 0));
  const auto counts = split(parts[2], '/');
  if (counts.size() != 4) return;
  const auto [place, is_new] = places.try_emplace(name, all.size());
  if (is_new) all.push_back(WatchedPartition{.name = name});
  WatchedPartition& at = all[place->second];
  at.is_default = is_default;
  at.cpus += cpu_count(counts[0]) + cpu_count(counts[1]);
  at.busy_cpus += cpu_count(counts[0]);
  for (std::string& node : node_list(parts[3], lists)) at.nodes.push_back(std::move(node));
}

/// Where some nodes are away, those at the head of the queue have a sentence for their reason.
bool may_start(const std::string& reason) {
  return std::find(kMayStart.begin(), kMayStart.end(), reason) != kMayStart.end() ||
         reason.starts_with("Nodes required for job are DOWN");
}

std::chrono::seconds age_of(const std::string& submitted, std::optional<std::chrono::seconds> now) {
  const auto moment = read_moment(submitted);
  if (!moment || !now) return std::chrono::seconds{-1};
  return std::max(*now - *moment, std::chrono::seconds{0});
}

/// Of accounts and QOS, and of arrays.
bool is_limit(const std::string& reason) {
  return meaning_of("PENDING", reason).state == BatchState::LimitReached ||
         reason == "JobArrayTaskLimit";
}

/// By number.
using Names = std::unordered_map<std::string, std::string>;

Names names_within(const std::vector<MarkedRecord>& records) {
  Names names;
  for (const MarkedRecord& record : records)
    names.try_emplace(std::string(record.head), std::string(record.free));
  return names;
}

WatchedJob job_of(const std::vector<std::string>& parts, const Names& names) {
  const auto own = names.find(parts[1]);
  WatchedJob job{.number = parts[1],
                 .name = own == names.end() ? "" : own->second,
                 .user = parts[2],
                 .partitions = split(parts[3], ','),
                 .cpus = cpu_count(parts[4])};
  job.limit = slurm_time(parts[5]).value_or(kNoLimit);
  return job;
}

// No cluster has more of either; what says so is damaged.
constexpr std::size_t kMostNodes = 50'000, kMostJobs = 100'000;

/// States of nodes that start nothing (sinfo(1), NODE STATE CODES); `*` is one that does not answer.
/// MAINT and RESERVED are what reservations say with their ends.
constexpr std::array<std::string_view, 14> kClosed{
    "DOWN",         "DRAIN",         "FAIL",   "UNKNOWN", "NO_RESPOND", "NOT_RESPONDING", "FUTURE",
    "POWERED_DOWN", "POWERING_DOWN", "REBOOT", "INVALID", "PERFCTRS",   "BLOCKED",        "ERROR"};

constexpr double kMegabyte = 1024.0 * 1024;

/// Of "cpu=4,mem=2000M,gres/gpu=2,gres/gpu:a100=2".
RoomOfJob tres_of(std::string_view tres) {
  RoomOfJob room;
  double of_any_kind = 0;
  for (const std::string& one : split(tres, ',')) {
    const auto equals = one.rfind('=');
    if (equals == std::string::npos) continue;
    const std::string_view value = std::string_view(one).substr(equals + 1);
    if (one.starts_with("mem=")) room.memory = amount_in(value, kMegabyte);
    if (one.starts_with("gres/gpu=")) of_any_kind = amount_in(value, 1);
    constexpr std::string_view kKind = "gres/gpu:";
    if (one.starts_with(kKind))
      room.gpus[one.substr(kKind.size(), equals - kKind.size())] = amount_in(value, 1);
  }
  if (room.gpus.empty() && of_any_kind > 0) room.gpus[""] = of_any_kind;
  return room;
}

/// "IDLE+DRAIN", "DOWN*+CLOUD".
bool is_closed(std::string_view state) {
  if (state.find('*') != std::string_view::npos) return true;
  const auto words = split(state, '+');
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return std::find(kClosed.begin(), kClosed.end(), word) != kClosed.end();
  });
}

/// NAME=VALUE, each once, of a line of `scontrol -o`; the first counts: a reason, which is a person's
/// text, stands at its end.
class Values {
 public:
  explicit Values(std::string_view line) {
    std::istringstream in{std::string(line)};
    for (std::string word; in >> word;) {
      const auto equals = word.find('=');
      if (equals != std::string::npos)
        values_.try_emplace(word.substr(0, equals), word.substr(equals + 1));
    }
  }
  std::string_view of(const std::string& name) const {
    const auto at = values_.find(name);
    return at == values_.end() ? std::string_view() : std::string_view(at->second);
  }

 private:
  std::map<std::string, std::string> values_;
};

RoomOfNode node_of(const Values& values) {
  RoomOfNode node{.name = std::string(values.of("NodeName"))};
  node.is_closed = is_closed(values.of("State"));
  const std::string_view effective = values.of("CPUEfctv");
  node.cpus = amount_in(effective.empty() ? values.of("CPUTot") : effective, 1);
  node.busy_cpus = std::min(amount_in(values.of("CPUAlloc"), 1), node.cpus);
  const double memory = amount_in(values.of("RealMemory"), kMegabyte);
  // A node's own share (MemSpecLimit) nobody gets.
  node.memory = std::max(0.0, memory - amount_in(values.of("MemSpecLimit"), kMegabyte));
  node.busy_memory = std::min(amount_in(values.of("AllocMem"), kMegabyte), node.memory);
  node.gpus = gpus_in_gres(values.of("Gres"));
  node.busy_gpus = gpus_in_gres(values.of("GresUsed"));
  return node;
}

std::optional<ReservedRoom> reservation_of(const Values& values,
                                           std::optional<std::chrono::seconds> now,
                                           NodeLists& lists) {
  const auto starts = read_moment(values.of("StartTime")), ends = read_moment(values.of("EndTime"));
  const std::string_view nodes = values.of("Nodes");
  if (!starts || !ends || !now || nodes.empty() || nodes == "(null)") return std::nullopt;
  return ReservedRoom{.name = std::string(values.of("ReservationName")),
                      .starts_in = *starts - *now,
                      .ends_in = *ends - *now,
                      .nodes = lists.names(nodes)};
}

/// "number array-number nodes tres tres-per-node".
void add_job(const std::string& line, WatchedRoom& room) {
  std::istringstream in(line);
  std::string number, of_array, nodes, tres, per_node;
  if (!(in >> number >> of_array >> nodes >> tres) || room.jobs.size() > kMostJobs) return;
  in >> per_node;
  RoomOfJob job = tres_of(tres);
  if (job.gpus.empty()) {
    job.gpus = gpus_in_gres(per_node);
    for (auto& [kind, count] : job.gpus) count *= std::max(1.0, amount_in(nodes, 1));
  }
  room.jobs[of_array] = job;
  room.jobs[number] = std::move(job);
}

/// Where nodes' memory is given to nobody, what jobs say of it is no claim (SelectTypeParameters
/// without Memory).
void drop_memory_nobody_counts(WatchedRoom& room) {
  const auto busy = [](const RoomOfNode& node) { return node.busy_cpus > 0; };
  const auto counted = [](const RoomOfNode& node) { return node.busy_memory > 0; };
  if (std::none_of(room.nodes.begin(), room.nodes.end(), busy) ||
      std::any_of(room.nodes.begin(), room.nodes.end(), counted))
    return;
  for (RoomOfNode& node : room.nodes) node.memory = 0;
}

}  // namespace

CommandLine Slurm::watch_queue() const {
  return {.argv = {"sh", "-c", std::string(kChooseMark) + kShown + kRoomLines + kWaiting},
          .environment = {},
          .input = {}};
}

Result<WatchedQueue> Slurm::read_queue(const CommandOutput& output) const {
  const auto distrust = [](const std::string& why) {
    return Error{Error::Kind::Transient, "cannot look at SLURM's queue: " + why};
  };
  if (output.timed_out) return distrust("squeue gave no answer in time");
  if (output.exit_code != 0) return distrust(one_line(output.standard_error));
  const auto own = read_marked(output.standard_output);
  if (!own) return distrust("half an answer");
  const Names names = names_within(own->records);
  WatchedQueue queue;
  Places places;
  NodeLists lists;
  bool whole = false;
  std::optional<std::chrono::seconds> now;
  std::istringstream lines{std::string(own->rest)};
  for (std::string line; std::getline(lines, line);) {
    if (line == "hbfailed") return distrust(one_line(output.standard_error));
    whole = line == "hbend";
    const auto parts = split(line, '|');
    if (parts[0] == "hbnow" && parts.size() == 2) {
      now = read_moment(parts[1]);
    } else if (parts[0] == "hbpart" && parts.size() >= 4) {
      add_partition(parts, places, lists, queue.partitions);
    } else if (parts[0] == "hbrun" && parts.size() == 9) {
      WatchedJob job = job_of(parts, names);
      job.runs = true;
      job.elapsed = slurm_time(parts[6]).value_or(std::chrono::seconds{0});
      job.nodes = node_list(parts[7], lists);
      job.age = age_of(parts[8], now);
      queue.jobs.push_back(std::move(job));
    } else if (parts[0] == "hbwait" && parts.size() == 8) {
      WatchedJob job = job_of(parts, names);
      job.age = age_of(parts[6], now);
      job.may_start = may_start(parts[7]);
      job.at_limit = is_limit(parts[7]);
      queue.jobs.push_back(std::move(job));
    } else if (parts[0] == "hbrun" || parts[0] == "hbwait") {
      return distrust("a line that is no batch job: " + one_line(line));
    }
  }
  if (!whole) return distrust("half an answer");
  return queue;
}

/// How full the nodes are that a look at the queue shows, by the same answer.
WatchedRoom Slurm::read_room(const CommandOutput& output) const {
  WatchedRoom room;
  NodeLists lists;
  std::optional<std::chrono::seconds> now;
  const auto own = read_marked(output.standard_output);
  if (!own) return room;
  std::istringstream lines{std::string(own->rest)};
  for (std::string line; std::getline(lines, line);) {
    const auto bar = line.find('|');
    const std::string_view what = std::string_view(line).substr(0, bar);
    if (bar == std::string::npos) continue;
    const std::string rest = line.substr(bar + 1);
    if (what == "hbnow") {
      now = read_moment(rest);
    } else if (what == "hbnode" && room.nodes.size() < kMostNodes) {
      if (RoomOfNode node = node_of(Values(rest)); !node.name.empty())
        room.nodes.push_back(std::move(node));
    } else if (what == "hbresv") {
      if (auto reserved = reservation_of(Values(rest), now, lists))
        room.reservations.push_back(std::move(*reserved));
    } else if (what == "hbroom") {
      add_job(rest, room);
    } else if (what == "hbpart") {
      const auto parts = split(rest, '|');
      if (parts.size() < 4 || parts[3] == "up") continue;
      std::string name = parts[0];
      if (name.ends_with('*')) name.pop_back();
      room.closed_partitions[name] = parts[3];
    }
  }
  drop_memory_nobody_counts(room);
  return room;
}

}  // namespace hpcbatch::slurm
