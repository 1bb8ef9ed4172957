// Where batch jobs of all users wait: nodes as far as they are waited for, queues, and those
// behind routing ones.
#pragma once

#include "hpcbatch/queue_watcher.hpp"
#include "records.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pbs {

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

}  // namespace hpcbatch::pbs
