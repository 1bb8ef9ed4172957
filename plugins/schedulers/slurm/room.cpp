#include "room.hpp"

#include "answer_lines.hpp"
#include "listing.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <string_view>

namespace hpcbatch::slurm {
namespace {

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

// Lines of jobs are of fixed widths, which squeue keeps to.
const char* const kRoomLines = R"sh(
scontrol -d -o show node 2>/dev/null | sed 's/^/hbnode|/'
scontrol -o show reservation 2>/dev/null | sed -n 's/^ReservationName=/hbresv|&/p'
squeue --all --local --noheader --array --states=pending,running,suspended,completing,configuring -O 'JobID:22,JobArrayID:40,NumNodes:10,tres-alloc:200,tres-per-node:100' 2>/dev/null | head -n 20000 | sed 's/^/hbroom|/;s/  */ /g'
)sh";

WatchedRoom read_room(const CommandOutput& output) {
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
