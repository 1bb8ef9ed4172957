#include "pilot/policy/cpus.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace hpcbatch::pilot {

Topology flat(const std::vector<unsigned>& numbers) {
  Topology all;
  for (const unsigned number : numbers) all.push_back({number, 0, number});
  return all;
}

FreeCpus::FreeCpus(Topology all) : all_(std::move(all)) {
  for (const Cpu& cpu : all_) free_.insert(cpu.number);
}

/// Of a core of which something is taken, nothing is left for who wants fewer threads of it than it
/// has.
std::vector<FreeCpus::NumaNode> FreeCpus::nodes(unsigned threads_per_core) const {
  std::map<unsigned, std::map<unsigned, Core>> found;
  for (const Cpu& cpu : all_) {
    Core& core = found[cpu.node][cpu.core];
    core.number = cpu.core;
    ++core.threads;
    if (free_.contains(cpu.number)) core.free.push_back(cpu.number);
  }
  std::vector<NumaNode> nodes;
  for (auto& [number, cores] : found) {
    NumaNode node{number, {}, 0, 0};
    for (auto& [of, core] : cores) {
      const std::size_t most = threads_per_core == 0
                                   ? core.threads
                                   : std::min<std::size_t>(threads_per_core, core.threads);
      node.threads += most;
      if (most < core.threads && core.free.size() < core.threads) core.free.clear();
      node.free += std::min(most, core.free.size());
      node.cores.push_back(std::move(core));
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

namespace {

/// What is left of them is nobody's meanwhile.
void take_threads(std::vector<unsigned>& free, std::size_t count, bool leaves_rest_idle,
                  CpuSet& into) {
  into.bound.insert(into.bound.end(), free.begin(),
                    free.begin() + static_cast<std::ptrdiff_t>(count));
  if (leaves_rest_idle)
    into.idle.insert(into.idle.end(), free.begin() + static_cast<std::ptrdiff_t>(count),
                     free.end());
  free.erase(free.begin(),
             leaves_rest_idle ? free.end() : free.begin() + static_cast<std::ptrdiff_t>(count));
}

}  // namespace

/// Whole cores for who needs them, the rest of begun ones for the others.
void FreeCpus::fill_from(NumaNode& node, std::size_t count, unsigned threads_per_core,
                         CpuSet& into) {
  std::size_t left = std::min(count, node.free);
  node.free -= left;
  const auto take_of = [&](Core& core) {
    const std::size_t most = threads_per_core == 0
                                 ? core.free.size()
                                 : std::min<std::size_t>(threads_per_core, core.free.size());
    const std::size_t part = std::min(left, most);
    const bool has_more = threads_per_core != 0 && threads_per_core < core.threads;
    take_threads(core.free, part, has_more && part > 0, into);
    left -= part;
  };
  for (Core& core : node.cores) {
    if (left > 0 && core.free.size() == core.threads && core.threads <= left) take_of(core);
  }
  for (Core& core : node.cores) {
    if (left > 0 && !core.free.empty() && core.free.size() < core.threads) take_of(core);
  }
  for (Core& core : node.cores) {
    if (left > 0 && !core.free.empty()) take_of(core);
  }
}

std::optional<CpuSet> FreeCpus::scattered(std::vector<NumaNode> nodes, std::size_t count,
                                          unsigned threads_per_core) {
  CpuSet set;
  while (set.bound.size() < count) {
    const auto node =
        std::max_element(nodes.begin(), nodes.end(),
                         [](const NumaNode& a, const NumaNode& b) { return a.free < b.free; });
    if (node == nodes.end() || node->free == 0) return std::nullopt;
    const auto core = std::max_element(
        node->cores.begin(), node->cores.end(),
        [](const Core& a, const Core& b) { return a.free.size() < b.free.size(); });
    const bool leaves_rest = threads_per_core != 0 && threads_per_core < core->threads;
    const std::size_t before = core->free.size();
    take_threads(core->free, 1, leaves_rest, set);
    node->free -= leaves_rest ? std::min<std::size_t>(threads_per_core, before) : 1;
  }
  return set;
}

std::optional<CpuSet> FreeCpus::choose(std::size_t count, const CpuWish& wish) const {
  std::vector<NumaNode> nodes = this->nodes(wish.threads_per_core);
  std::size_t free = 0, threads = 0, largest = 0;
  for (const NumaNode& node : nodes) {
    free += node.free;
    threads += node.threads;
    largest = std::max(largest, node.threads);
  }
  // So many cores there are not: better two threads of one than never.
  if (threads < count && wish.threads_per_core != 0)
    return choose(count, {wish.bind, 0, wish.near});
  if (free < count) return std::nullopt;
  if (wish.bind == CpuBind::Scatter)
    return scattered(std::move(nodes), count, wish.threads_per_core);
  // The fullest that has room for it; what is near first.
  NumaNode* best = nullptr;
  const auto rank = [&](const NumaNode& node) {
    return std::tuple(wish.near != node.number, node.free, node.number);
  };
  for (NumaNode& node : nodes) {
    if (node.free >= count && (best == nullptr || rank(node) < rank(*best))) best = &node;
  }
  CpuSet set;
  if (best != nullptr) {
    fill_from(*best, count, wish.threads_per_core, set);
    return set;
  }
  if (wish.bind == CpuBind::Numa && largest >= count) return std::nullopt;
  std::sort(nodes.begin(), nodes.end(),
            [](const NumaNode& a, const NumaNode& b) { return a.free > b.free; });
  for (NumaNode& node : nodes)
    fill_from(node, count - set.bound.size(), wish.threads_per_core, set);
  return set;
}

void FreeCpus::take(const CpuSet& cpus) {
  for (const auto* some : {&cpus.bound, &cpus.idle}) {
    for (const unsigned cpu : *some) free_.erase(cpu);
  }
}

void FreeCpus::give_back(const CpuSet& cpus) {
  for (const auto* some : {&cpus.bound, &cpus.idle}) free_.insert(some->begin(), some->end());
}

}  // namespace hpcbatch::pilot
