// What a node has and what of it is free: amounts by name, cpus and GPUs also by their numbers.
#pragma once

#include "hardware/cpu_binding.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::pilot {

// The cpus of a node that tasks are bound to: which are free, and which a task gets.  Pure.

/// One that the kernel counts: a hardware thread.
struct Cpu {
  unsigned number{};
  unsigned node{};  // of memory (NUMA)
  unsigned core{};  // threads of one core have one number
  friend bool operator==(const Cpu&, const Cpu&) = default;
};
using Topology = std::vector<Cpu>;

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

/// Amounts are in 1/10000 of a piece (of a byte, for memory).
constexpr std::int64_t kWhole = 10000;

using Amounts = std::vector<std::pair<std::string, std::int64_t>>;

/// Where a task runs.
struct Placement {
  unsigned slot{};
  std::vector<unsigned> cpus;         // numbers to be bound to; empty: not bound
  std::vector<unsigned> gpus;         // numbers of this pilot's devices
  std::vector<unsigned> idle_cpus{};  // threads of its cores that nobody else gets meanwhile
  friend bool operator==(const Placement&, const Placement&) = default;
};

class Room {
 public:
  /// One amount that a task needs of one thing that this node has.
  struct Need {
    std::size_t thing{};
    std::int64_t amount{};
  };
  using Needs = std::vector<Need>;

  /// `bindable` has one entry per whole cpu, or is empty where tasks are not to be bound.
  /// `gpu_names`: what the node's driver calls the GPU of each number; empty: nobody knows.
  Room(const Amounts& capacity, Topology bindable, const std::vector<std::string>& gpu_names = {});

  /// What of `granted` this node counts; nothing where it could not have it even when empty.  Names
  /// that this node does not have (licences) are the engine's to count.
  std::optional<Needs> needs_of(const Amounts& granted) const;

  std::optional<Placement> take(const Needs& needs, const CpuWish& wish = {});
  /// Of the GPU of that number: the node of memory whose cpus are near it.
  void gpu_is_near(unsigned device, unsigned node) { near_[device] = node; }
  void give_back(const Needs& needs, const Placement& placement);

  /// The GPU of that number is not to be used any more; what has it keeps it until it is given back.
  void set_aside(unsigned device);
  /// Whether it has a GPU that may be used.
  bool has_gpus() const;
  /// What of the capacity is left.
  Amounts total() const;
  bool could_ever_take(const Needs& needs) const;

  /// No cpu or no slot is free: no use to look at tasks one by one.
  bool is_full() const;

 private:
  struct Thing {
    std::string name;
    std::int64_t total{};
    std::int64_t free{};
    bool is_gpus{false};
    std::vector<unsigned> devices;        // of GPUs: their numbers in this pilot
    std::vector<std::int64_t> free_of{};  // of GPUs: what is free of each device
    std::vector<bool> aside{};            // and whether it is not to be used any more
  };

  static void give_back_devices(Thing& thing, std::int64_t amount, const Placement& placement);
  static std::vector<std::size_t> devices_for(const Thing& thing, std::int64_t amount);

  std::vector<Thing> things_;
  bool is_bound(const Need& need, const CpuWish& wish) const {
    return !cpus_free_.empty() && wish.bind != CpuBind::None && need.thing == cpus_ &&
           need.amount % kWhole == 0;
  }
  CpuWish beside_gpus(CpuWish wish, const Needs& needs) const;

  std::optional<std::size_t> cpus_;
  FreeCpus cpus_free_;
  std::map<unsigned, unsigned> near_;  // node of memory by device
  std::set<unsigned> free_slots_;      // below next_slot_
  unsigned next_slot_{0};
};

}  // namespace hpcbatch::pilot
