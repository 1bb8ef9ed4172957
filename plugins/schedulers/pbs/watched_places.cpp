#include "watched_places.hpp"

#include "queues.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace hpcbatch::pbs {
namespace {

// More are no compute nodes of one server, and no cpus of one node.
constexpr std::size_t kMostNodes = 20'000;
constexpr long kMostCpusOfANode = 100'000;

/// All others (down, offline, stale, state-unknown, provisioning...) get no batch job: PBS
/// Administrator's Guide, "Vnode states"; Torque, "Node states".  A host whose vnodes differ has
/// "<various>".
constexpr std::array<std::string_view, 9> kUp{"free",          "busy",           "job-busy",
                                              "job-exclusive", "resv-exclusive", "job-sharing",
                                              "reserve",       "time-shared",    "<various>"};

bool is_up(std::string_view state) {
  const auto words = parts_of(state, ',');
  return !words.empty() && std::all_of(words.begin(), words.end(), [](std::string_view word) {
    return std::find(kUp.begin(), kUp.end(), word) != kUp.end();
  });
}

double cpus_in(std::string_view written) {
  return static_cast<double>(std::clamp(read_number(written).value_or(0), 0L, kMostCpusOfANode));
}

/// Of Torque's "0-3/12.server,7/13.server", or with blanks, or a slot at a time.
double slots_with_jobs(std::string_view jobs) {
  double slots = 0;
  for (const std::string_view part : parts_of(jobs, ','))
    slots += slots_in(part.substr(0, part.find('/')));
  return slots;
}

ComputeNode compute_node(Record record) {
  const bool is_torque = !record.value("np").empty();
  const auto state = record.value("state");
  const auto sharing = record.value("sharing");
  ComputeNode node;
  node.name = record.head.substr(0, record.head.find_last_not_of(" \t\r") + 1);
  node.is_up = is_up(state);
  node.is_taken_whole =
      has_word(state, "resv-exclusive") || (!is_torque && has_word(state, "job-exclusive"));
  node.is_given_whole = sharing.starts_with("default_excl") || sharing.starts_with("force_excl");
  const std::string_view offered = record.value("resources_available.ncpus");
  node.cpus =
      cpus_in(is_torque ? record.value("np") : (offered.empty() ? record.value("pcpus") : offered));
  node.busy_cpus = is_torque ? slots_with_jobs(record.value("jobs"))
                             : cpus_in(record.value("resources_assigned.ncpus"));
  if (node.is_taken_whole || has_word(state, "job-exclusive")) node.busy_cpus = node.cpus;
  node.busy_cpus = std::min(node.busy_cpus, node.cpus);
  node.record = std::move(record);
  return node;
}

/// What says of which kind nodes are; anything else is an amount.
bool is_a_word(std::string_view value) {
  const auto first = value.empty() ? ' ' : static_cast<char>(value.front() | 0x20);
  return first >= 'a' && first <= 'z';
}

/// OpenPBS gives each chunk of a batch job what its queue has in default_chunk, such as Qlist
/// (PBS Administrator's Guide, "Associating vnodes with queues"); Torque asks for properties.
bool has_what_is_asked_for(const Record& queue, const ComputeNode& node) {
  constexpr std::string_view kChunk = "default_chunk.";
  for (const auto& [name, value] : queue.attributes) {
    if (!name.starts_with(kChunk) || !is_a_word(value)) continue;
    const std::string offered = "resources_available." + name.substr(kChunk.size());
    if (!has_word(node.record.value(offered), value)) return false;
  }
  for (const char* name : {"resources_default.neednodes", "features_required"}) {
    for (const std::string_view word : parts_of(queue.value(name), ':')) {
      if (is_a_word(word) && !word.starts_with("ppn=") && word != node.name &&
          !has_word(node.record.value("properties"), word))
        return false;
    }
  }
  // Each scheduler of an OpenPBS with several has queues and nodes of its own.
  return queue.value("partition") == node.record.value("partition");
}

}  // namespace

double slots_in(std::string_view ranges) {
  double slots = 0;
  for (const std::string_view range : parts_of(ranges, ',')) {
    const auto dash = range.find('-');
    const long first = read_number(range.substr(0, dash)).value_or(-1);
    const long last =
        dash == std::string_view::npos ? first : read_number(range.substr(dash + 1)).value_or(-1);
    const bool is_range = first >= 0 && last >= first && last - first < kMostCpusOfANode;
    if (is_range) slots += static_cast<double>(last - first + 1);
  }
  return slots;
}

std::vector<ComputeNode> compute_nodes(const std::string& text) {
  std::vector<ComputeNode> nodes;
  for (Record& record : read_records(text, Repeated::FirstCounts)) {
    if (nodes.size() == kMostNodes) break;
    if (!record.value("state").empty()) nodes.push_back(compute_node(std::move(record)));
  }
  return nodes;
}

std::vector<const ComputeNode*> nodes_of_queue(const Record& queue, const std::string& name,
                                               const std::vector<ComputeNode>& nodes) {
  const bool has_its_own = std::any_of(nodes.begin(), nodes.end(), [&](const ComputeNode& node) {
    return node.record.value("queue") == name;
  });
  std::vector<const ComputeNode*> found;
  for (const ComputeNode& node : nodes) {
    if (node.is_up && node.record.value("queue") == (has_its_own ? name : "") &&
        has_what_is_asked_for(queue, node))
      found.push_back(&node);
  }
  return found;
}

namespace {

// More are no queues of one server; reservations have one each.
constexpr std::size_t kMostQueues = 500;
constexpr double kMostCpus = 1e9;

using QueueRecords = std::map<std::string, const Record*>;

bool is_routing(const Record& queue) {
  return queue.value("queue_type") == "Route";
}

/// Names of queues that start batch jobs.
std::set<std::string> behind(const Record& route, const QueueRecords& queues,
                             const std::string& server) {
  std::set<std::string> seen;
  std::set<std::string> starting;
  std::vector<const Record*> open{&route};
  while (!open.empty()) {
    const Record* from = open.back();
    open.pop_back();
    for (const std::string_view place : parts_of(from->value("route_destinations"), ',')) {
      const auto at = std::min(place.find('@'), place.size());
      const bool is_elsewhere = at < place.size() && place.substr(at + 1) != server;
      const auto queue = queues.find(std::string(place.substr(0, at)));
      if (is_elsewhere || queue == queues.end() || queue->second->value("enabled") == "False" ||
          !seen.insert(queue->first).second)
        continue;
      if (is_routing(*queue->second)) {
        open.push_back(queue->second);
      } else {
        starting.insert(queue->first);
      }
    }
  }
  return starting;
}

WatchedPartition partition_of(const std::string& name, const std::set<const ComputeNode*>& nodes) {
  WatchedPartition partition{.name = name};
  for (const ComputeNode* node : nodes) {
    partition.cpus = std::min(kMostCpus, partition.cpus + node->cpus);
    partition.busy_cpus = std::min(kMostCpus, partition.busy_cpus + node->busy_cpus);
    partition.nodes.push_back(node->name);
  }
  return partition;
}

StartingQueue starting_queue(const Record& record, const std::string& name,
                             const WatchedPartition& partition,
                             const std::vector<const ComputeNode*>& nodes) {
  StartingQueue queue{.names = {name}};
  queue.priority = read_number(record.value("Priority")).value_or(0);
  queue.is_started = record.value("started") != "False";
  if (nodes.empty()) return queue;
  queue.cpus_of_a_node = partition.cpus / static_cast<double>(nodes.size());
  queue.gives_whole_nodes = std::all_of(
      nodes.begin(), nodes.end(), [](const ComputeNode* node) { return node->is_given_whole; });
  return queue;
}

/// Of "Transit:0 Queued:3 Held:1 Waiting:0 Running:5 Exiting:0".
long queued_in(std::string_view counts) {
  constexpr std::string_view kQueued = "Queued:";
  constexpr long kMost = 1'000'000'000;
  for (const std::string_view part : parts_of(counts, ' ')) {
    if (part.starts_with(kQueued))
      return std::clamp(read_number(part.substr(kQueued.size())).value_or(0), 0L, kMost);
  }
  return 0;
}

struct Server {
  std::string name;
  std::string default_queue;
  bool are_others_hidden{false};
};

Server server_among(const std::vector<Record>& things) {
  for (const Record& thing : things) {
    if (std::string name = after(thing.head, "Server:"); !name.empty())
      return {std::move(name), std::string(thing.value("default_queue")),
              thing.value("query_other_jobs") != "True"};
  }
  return {};
}

}  // namespace

QueuesToWatch queues_to_watch(const std::vector<Record>& things,
                              const std::vector<ComputeNode>& nodes) {
  const Server server = server_among(things);
  QueueRecords records;
  for (const Record& thing : things) {
    if (const std::string name = after(thing.head, "Queue:");
        !name.empty() && records.size() < kMostQueues)
      records.try_emplace(name, &thing);
  }
  QueuesToWatch all;
  all.are_others_hidden = server.are_others_hidden;
  std::map<std::string, std::set<const ComputeNode*>> nodes_of;
  for (const auto& [name, record] : records) {
    all.waiting += queued_in(record->value("state_count"));
    if (is_routing(*record)) continue;
    const auto own = nodes_of_queue(*record, name, nodes);
    nodes_of[name] = {own.begin(), own.end()};
    all.partitions.push_back(partition_of(name, nodes_of[name]));
    all.starting[name] = starting_queue(*record, name, all.partitions.back(), own);
  }
  for (const auto& [name, record] : records) {
    if (!is_routing(*record)) continue;
    std::set<const ComputeNode*> reached;
    for (const std::string& starting : behind(*record, records, server.name)) {
      reached.insert(nodes_of[starting].begin(), nodes_of[starting].end());
      all.starting[starting].names.push_back(name);
    }
    all.partitions.push_back(partition_of(name, reached));
  }
  for (WatchedPartition& partition : all.partitions)
    partition.is_default = partition.name == server.default_queue;
  return all;
}

}  // namespace hpcbatch::pbs
