#include "foresight/watch/node_room.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace hpcbatch::foresight {
namespace {

// Sums of parts that were taken apart.
constexpr double kAlmost = 1e-6;

bool holds(const std::vector<double>& free, const std::vector<double>& wanted) {
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (free[i] + kAlmost * (1 + wanted[i]) < wanted[i]) return false;
  return true;
}

}  // namespace

double gpus_of_kind(const GpuCounts& gpus, const std::string& kind) {
  double count = 0;
  for (const auto& [name, of_name] : gpus)
    if (kind.empty() || name.empty() || name == kind) count += of_name;
  return count;
}

NodeRoom::NodeRoom(const WatchedRoom& room, const std::vector<std::string>& names, Seconds now)
    : now_(now) {
  const std::set<std::string> wanted(names.begin(), names.end());
  for (const RoomOfNode& node : room.nodes) {
    if (node.is_closed || !wanted.contains(node.name)) continue;
    by_name_.emplace(node.name, nodes_.size());
    nodes_.push_back({&node, {}});
  }
  for (const ReservedRoom& reserved : room.reservations) {
    const Window window{now + reserved.starts_in.count(), now + reserved.ends_in.count()};
    for (const std::string& name : reserved.nodes) {
      const auto at = by_name_.find(name);
      if (at != by_name_.end() && window.until > now) nodes_[at->second].reserved.push_back(window);
    }
  }
}

std::set<std::string> NodeRoom::free_of_reservations() const {
  std::set<std::string> names;
  for (const Node& node : nodes_)
    if (reserved_until(node, now_) == now_) names.insert(node.facts->name);
  return names;
}

/// From then on it is nobody's; `at` where it is not reserved then.
Seconds NodeRoom::reserved_until(const Node& node, Seconds at) {
  bool is_later = true;
  while (std::exchange(is_later, false)) {
    for (const Window& window : node.reserved) {
      if (window.from > at || window.until <= at) continue;
      at = window.until;
      is_later = true;
    }
  }
  return at;
}

/// What would still run when a reservation begins is not started before it.
bool NodeRoom::may_run(const Node& node, Seconds at, Seconds limit) {
  return std::none_of(node.reserved.begin(), node.reserved.end(), [&](const Window& window) {
    return window.until > at && window.from < at + limit;
  });
}

/// What is free on each node, and on how many of them there is room for one batch job.
class NodeRoom::Filling {
 public:
  Filling(const NodeRoom& room, const WantedRoom& wanted, Seconds limit,
          const std::vector<RunningRoom>& running)
      : room_(room), limit_(limit), needed_{wanted.cpus, room.counts_memory() ? wanted.memory : 0} {
    for (const auto& [kind, count] : wanted.gpus) {
      kinds_.push_back(kind);
      needed_.push_back(count);
    }
    for (const Node& node : room.nodes_) {
      const RoomOfNode& facts = *node.facts;
      std::vector<double> free = all_of(facts);
      free[0] -= facts.busy_cpus;
      free[1] -= facts.busy_memory;
      for (std::size_t k = 0; k < kinds_.size(); ++k)
        free[2 + k] -= gpus_of_kind(facts.busy_gpus, kinds_[k]);
      if (!node.reserved.empty())
        reserved_.push_back(free_.size());
      else if (holds(free, needed_))
        ++fitting_;
      free_.push_back(std::move(free));
      there_.push_back(0);
    }
    for (const RunningRoom& job : running)
      for (const std::string& name : job.nodes)
        if (const auto at = room.by_name_.find(name); at != room.by_name_.end())
          ++there_[at->second];
  }

  void end(const RunningRoom& job) {
    const auto parts = static_cast<double>(job.nodes.size());
    for (const std::string& name : job.nodes) {
      const auto at = room_.by_name_.find(name);
      if (at == room_.by_name_.end()) continue;
      std::vector<double>& free = free_[at->second];
      const bool counts = room_.nodes_[at->second].reserved.empty() && !holds(free, needed_);
      free[0] += job.cpus / parts;
      free[1] += job.memory / parts;
      for (std::size_t k = 0; k < kinds_.size(); ++k)
        free[2 + k] += gpus_of_kind(job.gpus, kinds_[k]) / parts;
      // Which part a batch job has of which of its nodes nobody tells: where the last has ended
      // everything is free.
      if (--there_[at->second] == 0) free = all_of(*room_.nodes_[at->second].facts);
      if (counts && holds(free, needed_)) ++fitting_;
    }
  }

  /// One that begins where there is room for it.
  RunningRoom start(const WantedRoom& wanted, Seconds at) {
    const double nodes = wanted.nodes;
    RunningRoom job{.cpus = wanted.cpus * nodes, .memory = wanted.memory * nodes};
    for (const auto& [kind, count] : wanted.gpus) job.gpus[kind] = count * nodes;
    for (std::size_t i = 0; i < free_.size() && job.nodes.size() < wanted.nodes; ++i) {
      const Node& node = room_.nodes_[i];
      if (!holds(free_[i], needed_) || !may_run(node, at, limit_)) continue;
      job.nodes.push_back(node.facts->name);
      for (std::size_t k = 0; k < needed_.size(); ++k) free_[i][k] -= needed_[k];
      ++there_[i];
      if (node.reserved.empty() && !holds(free_[i], needed_)) --fitting_;
    }
    return job;
  }

  std::size_t nodes_with_room(Seconds at) const {
    return fitting_ + static_cast<std::size_t>(
                          std::count_if(reserved_.begin(), reserved_.end(), [&](std::size_t node) {
                            return holds(free_[node], needed_) &&
                                   may_run(room_.nodes_[node], at, limit_);
                          }));
  }

 private:
  std::vector<double> all_of(const RoomOfNode& node) const {
    std::vector<double> all{node.cpus, node.memory};
    for (const std::string& kind : kinds_) all.push_back(gpus_of_kind(node.gpus, kind));
    return all;
  }

  const NodeRoom& room_;
  Seconds limit_;
  std::vector<double> needed_;  ///< cpus, memory, then each of `kinds_`
  std::vector<std::string> kinds_;
  std::vector<std::vector<double>> free_;
  std::vector<std::uint32_t> there_;  ///< batch jobs that run on each
  std::vector<std::size_t>
      reserved_;            ///< at some time: whether there is room depends on the moment
  std::size_t fitting_{0};  ///< of the others
};

bool NodeRoom::counts_memory() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const Node& node) { return node.facts->memory > 0; });
}

std::optional<Seconds> NodeRoom::next_window_end(Seconds after) const {
  std::optional<Seconds> next;
  for (const Node& node : nodes_)
    for (const Window& window : node.reserved)
      if (window.until > after) next = std::min(next.value_or(window.until), window.until);
  return next;
}

std::vector<Seconds> NodeRoom::fits(const WantedRoom& wanted, Seconds limit,
                                    const std::vector<RunningRoom>& running,
                                    std::size_t count) const {
  Filling filling(*this, wanted, limit, running);
  std::multimap<Seconds, RunningRoom> ends;
  for (const RunningRoom& job : running) ends.emplace(std::max(job.ends, now_), job);
  std::vector<Seconds> starts;
  std::optional<Seconds> moment = now_;
  while (moment && starts.size() < count) {
    for (; !ends.empty() && ends.begin()->first <= *moment; ends.erase(ends.begin()))
      filling.end(ends.begin()->second);
    while (starts.size() < count && filling.nodes_with_room(*moment) >= wanted.nodes) {
      starts.push_back(*moment);
      ends.emplace(*moment + std::max<Seconds>(limit, 1), filling.start(wanted, *moment));
    }
    moment = next_window_end(*moment);
    if (!ends.empty()) moment = std::min(moment.value_or(ends.begin()->first), ends.begin()->first);
  }
  return starts;
}

}  // namespace hpcbatch::foresight
