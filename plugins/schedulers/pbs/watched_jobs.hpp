// Batch jobs of all users: which run, which wait for nodes, in which order and how large.
#pragma once

#include "hpcbatch/queue_watcher.hpp"
#include "hpcbatch/result.hpp"
#include "records.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hpcbatch::pbs {

// Where batch jobs of all users wait: nodes as far as they are waited for, queues, and those
// behind routing ones.

// Nodes as far as batch jobs wait for them: how many of their cpus are there, and how many busy.

struct ComputeNode {
  std::string name;
  bool is_up{false};
  double cpus{0};
  double busy_cpus{0};
  /// One batch job has all of it, however little it asked for.
  bool is_taken_whole{false};
  /// What does not say otherwise shares it with nothing.
  bool is_given_whole{false};
  Record record;
};

/// Of "0-3,7" or "2", as slots of a node are told: how many they are.
double slots_in(std::string_view ranges);

/// Of what `pbsnodes -a` printed.
std::vector<ComputeNode> compute_nodes(const std::string& text);

/// Of `nodes`, those that are up and on which batch jobs of this queue may run.
std::vector<const ComputeNode*> nodes_of_queue(const Record& queue, const std::string& name,
                                               const std::vector<ComputeNode>& nodes);

// Queues as places where batch jobs wait for nodes; routing ones stand for those behind them.

/// A queue from which batch jobs start.
struct StartingQueue {
  /// Its own, and those of the routing queues that lead to it: a site may name any of them.
  std::vector<std::string> names;
  long priority{0};
  bool is_started{true};
  double cpus_of_a_node{0};
  bool gives_whole_nodes{false};
};

struct QueuesToWatch {
  std::vector<WatchedPartition> partitions;
  std::map<std::string, StartingQueue> starting;
  /// As the server counts them.
  long waiting{0};
  /// Whether only one's own batch jobs are listed, where nobody says more.
  bool are_others_hidden{false};
};

/// `things`: queues and the server.
QueuesToWatch queues_to_watch(const std::vector<Record>& things,
                              const std::vector<ComputeNode>& nodes);

/// No more that wait can matter for what starts within days.
inline constexpr std::size_t kMostThatWait = 5000;

struct ListedJobs {
  std::vector<WatchedJob> jobs;
  std::size_t waiting{0};  ///< in state Q; an array counts as one
};

/// Of batch jobs of our own user, by number.
using Names = std::unordered_map<std::string, std::string>;

/// An error says what cannot be told.  `now`: in the zone of the records.
Result<ListedJobs> listed_jobs(const std::vector<Record>& records, const Names& own,
                               const QueuesToWatch& queues, const std::vector<ComputeNode>& nodes,
                               std::optional<std::chrono::sys_seconds> now);

}  // namespace hpcbatch::pbs
