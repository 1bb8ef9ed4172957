// Queues as places where batch jobs wait for nodes; routing ones stand for those behind them.
#pragma once

#include "hpcbatch/queue_watcher.hpp"
#include "records.hpp"
#include "watched_nodes.hpp"

#include <map>
#include <string>
#include <vector>

namespace hpcbatch::pbs {

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
