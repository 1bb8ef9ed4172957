#include "watched_queues.hpp"

#include <algorithm>
#include <set>

namespace hpcbatch::pbs {
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
