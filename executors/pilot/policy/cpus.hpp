// The cpus of a node that tasks are bound to: which are free, and which a task gets.  Pure.
#pragma once

#include "hardware/cpu_binding.hpp"

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

namespace hpcbatch::pilot {

/// One that the kernel counts: a hardware thread.
struct Cpu {
  unsigned number{};
  unsigned node{};  // of memory (NUMA)
  unsigned core{};  // threads of one core have one number
  friend bool operator==(const Cpu&, const Cpu&) = default;
};
using Topology = std::vector<Cpu>;

/// Where nothing is known of them: one node of memory, a core each.
Topology flat(const std::vector<unsigned>& numbers);

struct CpuWish {
  CpuBind bind{CpuBind::Compact};
  unsigned threads_per_core{0};    // at most so many; what is left of a core is nobody's; 0: all
  std::optional<unsigned> near{};  // a node of memory that is better than others
  friend bool operator==(const CpuWish&, const CpuWish&) = default;
};

/// What a task has: bound to `bound`; `idle` are threads of its cores that it leaves unused.
struct CpuSet {
  std::vector<unsigned> bound;
  std::vector<unsigned> idle;
};

class FreeCpus {
 public:
  explicit FreeCpus(Topology all);

  bool empty() const { return all_.empty(); }
  /// Nothing where it has to wait.
  std::optional<CpuSet> choose(std::size_t count, const CpuWish& wish) const;
  void take(const CpuSet& cpus);
  void give_back(const CpuSet& cpus);

 private:
  struct Core {
    unsigned number{};
    std::vector<unsigned> free;  // its threads
    std::size_t threads{};
  };
  struct NumaNode {
    unsigned number{};
    std::vector<Core> cores;
    std::size_t free{};     // as many as may be had
    std::size_t threads{};  // free or not
  };
  std::vector<NumaNode> nodes(unsigned threads_per_core) const;
  static void fill_from(NumaNode& node, std::size_t count, unsigned threads_per_core, CpuSet& into);
  static std::optional<CpuSet> scattered(std::vector<NumaNode> nodes, std::size_t count,
                                         unsigned threads_per_core);

  Topology all_;
  std::set<unsigned> free_;
};

}  // namespace hpcbatch::pilot
