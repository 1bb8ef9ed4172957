#include "model/resources.hpp"

#include "model/check.hpp"
#include "model/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hpcbatch {
namespace {

bool is_gpu(std::string_view name) {
  return name.starts_with(kGpuPrefix);
}

/// Of the kinds that this demand would take, that of which most is there, less what is demanded by
/// kind; empty where there is none.
std::pair<std::string, Amount> roomiest_gpu(std::string_view wanted, const Resources& demand,
                                            const Resources& supply) {
  std::pair<std::string, Amount> best;
  for (const auto& [name, amount] : supply.entries()) {
    if (!takes_gpu(wanted, name)) continue;
    const Amount left = amount - demand.get(name);
    if (best.first.empty() || left > best.second) best = {name, left};
  }
  return best;
}

}  // namespace

bool names_several_gpus(std::string_view demand) {
  return demand == kAnyGpu || (is_gpu(demand) && demand.find(kGpuEither) != std::string_view::npos);
}

bool takes_gpu(std::string_view demand, std::string_view supply) {
  if (!is_gpu(supply)) return false;
  if (demand == kAnyGpu) return true;
  if (!is_gpu(demand)) return false;
  const std::string_view kind = supply.substr(kGpuPrefix.size());
  std::string_view kinds = demand.substr(kGpuPrefix.size());
  for (;;) {
    const std::size_t end = kinds.find(kGpuEither);
    if (kinds.substr(0, end) == kind) return true;
    if (end == std::string_view::npos) return false;
    kinds.remove_prefix(end + 1);
  }
}

Amount Amount::of_fraction(double value) {
  const double ticks = value * kTicks;
  // 2^63 is the least that has no place.
  if (ticks >= 0x1p63) return Amount{kMost};
  if (ticks <= -0x1p63) return Amount{-kMost};
  if (ticks > 0 && ticks < 1) return Amount{1};
  return Amount{static_cast<std::int64_t>(std::llround(ticks))};
}

Amount Resources::get(std::string_view name) const {
  for (const Entry& entry : entries_) {
    if (entry.first == name) return entry.second;
  }
  return {};
}

void Resources::set(std::string_view name, Amount amount) {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                                   [](const Entry& e, std::string_view n) { return e.first < n; });
  if (at != entries_.end() && at->first == name) {
    if (amount == Amount{}) {
      entries_.erase(at);
    } else {
      at->second = amount;
    }
  } else if (amount != Amount{}) {
    entries_.insert(at, Entry{std::string(name), amount});
  }
}

void Resources::add(const Resources& other) {
  for (const auto& [name, amount] : other.entries_) set(name, get(name) + amount);
}

void Resources::subtract(const Resources& other) {
  for (const auto& [name, amount] : other.entries_) set(name, get(name) - amount);
}

Amount Resources::gpus() const {
  Amount sum = get(kAnyGpu);
  for (const auto& [name, amount] : entries_) {
    if (is_gpu(name)) sum += amount;
  }
  return sum;
}

bool fits(const Resources& demand, const Resources& supply) {
  for (const auto& [name, amount] : demand.entries()) {
    const Amount there =
        names_several_gpus(name) ? roomiest_gpu(name, demand, supply).second : supply.get(name);
    if (amount > there) return false;
  }
  return true;
}

Resources resolve(const Resources& demand, const Resources& supply) {
  Resources taken = demand;
  for (const auto& [name, any] : demand.entries()) {
    if (!names_several_gpus(name)) continue;
    const auto [kind, left] = roomiest_gpu(name, demand, supply);
    HPCBATCH_CHECK(any <= left);
    taken.set(name, {});
    taken.set(kind, taken.get(kind) + any);
  }
  return taken;
}

std::string_view device_of(const Resources& granted) {
  for (const auto& [name, amount] : granted.entries()) {
    if (is_gpu(name)) return name;
  }
  return kCpus;
}

std::string packed_on(std::string_view device, double part) {
  return fmt::format("{}*{:g}", device, part);
}

std::string_view whole_device(std::string_view device) {
  return device.substr(0, device.find('*'));
}

std::uint64_t how_often(const Resources& demand, const Resources& supply) {
  if (!fits(demand, supply)) return 0;
  std::int64_t times = INT64_MAX;
  for (const auto& [name, amount] : demand.entries()) {
    if (amount.ticks <= 0) continue;
    if (!names_several_gpus(name)) {
      times = std::min(times, supply.get(name).ticks / amount.ticks);
      continue;
    }
    std::int64_t of_all_kinds = 0;
    for (const auto& [kind, there] : supply.entries()) {
      if (takes_gpu(name, kind))
        of_all_kinds += std::max<std::int64_t>(0, (there - demand.get(kind)).ticks / amount.ticks);
    }
    times = std::min(times, of_all_kinds);
  }
  return static_cast<std::uint64_t>(times);
}

std::string show(const Resources& resources) {
  std::string text;
  const auto item = [&](std::string part) { text += (text.empty() ? "" : ", ") + std::move(part); };
  for (const auto& [name, amount] : resources.entries()) {
    if (name == kMemory || name == kDisk) {
      item(fmt::format(
          "{} {}", show_size(static_cast<std::uint64_t>(std::max<std::int64_t>(0, amount.whole()))),
          name));
    } else if (name == kAnyGpu) {
      item(
          fmt::format("{:g} {} of any kind", amount.value(), amount.value() == 1 ? "gpu" : "gpus"));
    } else if (name == kCpus) {
      item(fmt::format("{:g} {}", amount.value(), amount.value() == 1 ? "cpu" : "cpus"));
    } else if (is_gpu(name)) {
      std::string kinds = name.substr(kGpuPrefix.size());
      for (std::size_t at = 0; (at = kinds.find(kGpuEither, at)) != std::string::npos;)
        kinds.replace(at, 1, " or ");
      item(fmt::format("{:g} {}", amount.value(), kinds));
    } else {
      item(fmt::format("{:g} {}", amount.value(), name));
    }
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace hpcbatch
