// When there is room for a batch job node by node, as those end that run: on as many nodes as it wants
// at once, of everything that it wants, and of no node that is reserved meanwhile.
#pragma once

#include "foresight/wait_history.hpp"

#include "hpcbatch/room_watcher.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::foresight {

/// Of each of so many nodes.
struct WantedRoom {
  std::uint32_t nodes{1};
  double cpus{1};
  double memory{0};  ///< bytes
  GpuCounts gpus;    ///< by kind; kind "" is any
};

/// Those of a kind; what has no kind may be of it.
double gpus_of_kind(const GpuCounts& gpus, const std::string& kind);

/// One that runs, and when it ends.
struct RunningRoom {
  std::vector<std::string> nodes;
  double cpus{0}, memory{0};  ///< in all
  GpuCounts gpus;
  Seconds ends{0};
};

class NodeRoom {
 public:
  /// Of `names` those that take batch jobs; moments count from `now`.
  NodeRoom(const WatchedRoom& room, const std::vector<std::string>& names, Seconds now);

  bool knows_nodes() const { return !nodes_.empty(); }
  /// Those that are reserved for nobody now.
  std::set<std::string> free_of_reservations() const;
  /// Of an amount on all nodes that may be had from each moment on, the first `now`; `of` says how
  /// much of it a node has.
  template <class Of>
  std::vector<std::pair<Seconds, double>> over_time(Of of) const {
    std::vector<std::pair<Seconds, double>> steps{{now_, 0}};
    std::map<Seconds, double> later;
    for (const Node& node : nodes_) {
      const Seconds from = reserved_until(node, now_);
      (from == now_ ? steps.front().second : later[from]) += of(*node.facts);
    }
    for (const auto& [when, more] : later) steps.emplace_back(when, steps.back().second + more);
    return steps;
  }
  /// When so many that want this could start, one after another, each for as long as `limit`; fewer
  /// where there never is room by what is known to run.
  std::vector<Seconds> fits(const WantedRoom& wanted, Seconds limit,
                            const std::vector<RunningRoom>& running, std::size_t count) const;

 private:
  struct Window {
    Seconds from{0}, until{0};
  };
  struct Node {
    const RoomOfNode* facts;
    std::vector<Window> reserved;
  };
  class Filling;
  static Seconds reserved_until(const Node& node, Seconds at);
  static bool may_run(const Node& node, Seconds at, Seconds limit);
  bool counts_memory() const;
  std::optional<Seconds> next_window_end(Seconds after) const;

  std::vector<Node> nodes_;
  std::map<std::string, std::size_t> by_name_;
  Seconds now_;
};

}  // namespace hpcbatch::foresight
