#include "pilot/policy/room.hpp"

#include "hardware/gpu_kind.hpp"
#include "planted/planted.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace hpcbatch::pilot {

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

namespace {

constexpr unsigned kMostSlots = 4096;
constexpr std::string_view kGpus = "gpus";

bool names_gpus(std::string_view name) {
  return name == kGpus || name.starts_with("gpus/");
}

/// The numbers of the devices of each kind that the node has.  Of several kinds only the driver
/// knows which is which; what it calls by none of their names is given out in order.
std::map<std::string, std::vector<unsigned>> devices_by_kind(
    const Amounts& capacity, const std::vector<std::string>& gpu_names) {
  std::map<std::string, std::vector<unsigned>> by_kind;
  std::set<unsigned> taken;
  const auto count_of = [](std::int64_t total) {
    return static_cast<std::size_t>(std::max<std::int64_t>(0, total) / kWhole);
  };
  // `rtx_2080_ti` chooses before `rtx_2080`, which would fit it, too.
  Amounts longest_first = capacity;
  std::stable_sort(
      longest_first.begin(), longest_first.end(),
      [](const auto& one, const auto& other) { return one.first.size() > other.first.size(); });
  for (const auto& [name, total] : longest_first) {
    if (!names_gpus(name)) continue;
    std::vector<unsigned>& devices = by_kind[name];
    for (unsigned device = 0; device < gpu_names.size() && devices.size() < count_of(total);
         ++device) {
      const bool is_one =
          name != kGpus && is_gpu_called(gpu_names[device], name.substr(kGpus.size() + 1));
      if (is_one && taken.insert(device).second) devices.push_back(device);
    }
  }
  for (const auto& [name, total] : capacity) {
    if (!names_gpus(name)) continue;
    std::vector<unsigned>& devices = by_kind[name];
    for (unsigned device = 0; devices.size() < count_of(total); ++device)
      if (taken.insert(device).second) devices.push_back(device);
    std::sort(devices.begin(), devices.end());
  }
  return by_kind;
}

}  // namespace

Room::Room(const Amounts& capacity, Topology bindable, const std::vector<std::string>& gpu_names)
    : cpus_free_(std::move(bindable)) {
  const auto devices_of = devices_by_kind(capacity, gpu_names);
  for (const auto& [name, total] : capacity) {
    Thing thing{name, total, total, names_gpus(name), {}, {}, {}};
    if (thing.is_gpus) {
      thing.devices = devices_of.at(name);
      thing.free_of.assign(thing.devices.size(), kWhole);
      thing.aside.assign(thing.devices.size(), false);
    }
    if (name == "cpus") cpus_ = things_.size();
    things_.push_back(std::move(thing));
  }
}

std::optional<Room::Needs> Room::needs_of(const Amounts& granted) const {
  Needs needs;
  for (const auto& [name, amount] : granted) {
    if (amount <= 0) continue;
    const auto found =
        std::find_if(things_.begin(), things_.end(), [&name = name](const Thing& thing) {
          return thing.name == name || (name == kGpus && thing.is_gpus);
        });
    if (found == things_.end()) {
      if (names_gpus(name)) return std::nullopt;
      continue;
    }
    if (amount > found->total) return std::nullopt;
    needs.push_back({static_cast<std::size_t>(found - things_.begin()), amount});
  }
  return needs;
}

/// Part of a device is taken from the fullest that still has it; whole devices are free ones.
std::vector<std::size_t> Room::devices_for(const Thing& thing, std::int64_t amount) {
  std::vector<std::size_t> chosen;
  if (amount < kWhole) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < thing.free_of.size(); ++i) {
      if (thing.free_of[i] >= amount && (!best || thing.free_of[i] < thing.free_of[*best]))
        best = i;
    }
    if (best) chosen.push_back(*best);
    return chosen;
  }
  const auto wanted = static_cast<std::size_t>((amount + kWhole - 1) / kWhole);
  for (std::size_t i = 0; i < thing.free_of.size() && chosen.size() < wanted; ++i) {
    if (thing.free_of[i] == kWhole) chosen.push_back(i);
  }
  if (chosen.size() < wanted) chosen.clear();
  return chosen;
}

CpuWish Room::beside_gpus(CpuWish wish, const Needs& needs) const {
  if (near_.empty() || wish.near) return wish;
  for (const Need& need : needs) {
    if (!things_[need.thing].is_gpus) continue;
    const auto devices = devices_for(things_[need.thing], need.amount);
    if (devices.empty()) continue;
    const auto near = near_.find(things_[need.thing].devices[devices.front()]);
    if (near != near_.end()) wish.near = near->second;
  }
  return wish;
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
std::optional<Placement> Room::take(const Needs& needs, const CpuWish& asked) {
  if (free_slots_.empty() && next_slot_ == kMostSlots) return std::nullopt;
  const CpuWish wish = beside_gpus(asked, needs);
  CpuSet cpus;
  for (const Need& need : needs) {
    const Thing& thing = things_[need.thing];
    if (thing.free < need.amount && !HPCBATCH_PLANTED(room_given_twice)) return std::nullopt;
    if (thing.is_gpus && devices_for(thing, need.amount).empty()) return std::nullopt;
    if (!is_bound(need, wish)) continue;
    auto chosen = cpus_free_.choose(static_cast<std::size_t>(need.amount / kWhole), wish);
    if (!chosen) return std::nullopt;
    cpus = std::move(*chosen);
  }
  Placement placement;
  for (const Need& need : needs) {
    Thing& thing = things_[need.thing];
    thing.free -= need.amount;
    if (thing.is_gpus) {
      for (const std::size_t device : devices_for(thing, need.amount)) {
        thing.free_of[device] -= std::min(need.amount, kWhole);
        placement.gpus.push_back(thing.devices[device]);
      }
    }
  }
  cpus_free_.take(cpus);
  placement.cpus = std::move(cpus.bound);
  placement.idle_cpus = std::move(cpus.idle);
  if (free_slots_.empty()) {
    placement.slot = next_slot_++;
  } else {
    placement.slot = *free_slots_.begin();
    free_slots_.erase(free_slots_.begin());
  }
  return placement;
}

/// Of devices that are set aside nothing comes back.
void Room::give_back_devices(Thing& thing, std::int64_t amount, const Placement& placement) {
  std::int64_t left = amount;
  for (std::size_t i = 0; i < thing.devices.size(); ++i) {
    if (std::find(placement.gpus.begin(), placement.gpus.end(), thing.devices[i]) ==
        placement.gpus.end())
      continue;
    const std::int64_t of_device = std::min(left, kWhole);
    left -= of_device;
    if (thing.aside[i]) continue;
    thing.free_of[i] += std::min(amount, kWhole);
    thing.free += of_device;
  }
}

void Room::set_aside(unsigned device) {
  for (Thing& thing : things_) {
    const auto found = std::find(thing.devices.begin(), thing.devices.end(), device);
    if (found == thing.devices.end()) continue;
    const auto i = static_cast<std::size_t>(found - thing.devices.begin());
    if (thing.aside[i]) return;
    thing.aside[i] = true;
    thing.total -= kWhole;
    thing.free -= thing.free_of[i];
    thing.free_of[i] = 0;
  }
}

bool Room::has_gpus() const {
  return std::any_of(things_.begin(), things_.end(),
                     [](const Thing& thing) { return thing.is_gpus && thing.total >= kWhole; });
}

Amounts Room::total() const {
  Amounts amounts;
  for (const Thing& thing : things_) {
    if (thing.total > 0) amounts.emplace_back(thing.name, thing.total);
  }
  return amounts;
}

bool Room::could_ever_take(const Needs& needs) const {
  return std::all_of(needs.begin(), needs.end(),
                     [this](const Need& need) { return need.amount <= things_[need.thing].total; });
}

void Room::give_back(const Needs& needs, const Placement& placement) {
  for (const Need& need : needs) {
    Thing& thing = things_[need.thing];
    if (thing.is_gpus)
      give_back_devices(thing, need.amount, placement);
    else
      thing.free += need.amount;
  }
  cpus_free_.give_back({placement.cpus, placement.idle_cpus});
  free_slots_.insert(placement.slot);
}

bool Room::is_full() const {
  const bool no_cpu = cpus_ && things_[*cpus_].free <= 0;
  return no_cpu || (free_slots_.empty() && next_slot_ == kMostSlots);
}

}  // namespace hpcbatch::pilot
