#include "records/advice.hpp"

#include "hardware/gpu_kind.hpp"
#include "model/resources.hpp"
#include "records/estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

namespace hpcbatch::records {
namespace {

// Who has too little memory fails, who has too few cpus is late.
constexpr double kAll = 1;
constexpr double kMost = 0.95;
// What was never seen may come all the same.
constexpr double kMemoryRoom = 1.2;
constexpr double kMegabyte = 1 << 20;
// A change that saves less than a tenth is not worth a word.
constexpr double kWorthIt = 0.9;

constexpr double kMostRuns = 0.5;

/// 128M, 144M, ... 1G, 1.25G, 1.5G, ...: few values, which share shapes.
double rounded_up(double bytes) {
  double step = 16 * kMegabyte;
  while (step * 8 < bytes) step *= 2;
  return std::ceil(bytes / step) * step;
}

void add_saving(std::vector<Advice>& all, Advice advice, double asked_together) {
  if (advice.enough <= 0 || advice.enough > advice.asked * kWorthIt) return;
  advice.saves = asked_together * (1 - advice.enough / advice.asked);
  all.push_back(std::move(advice));
}

/// Bytes that each device has on which the kind ran; 0: of one nobody knows that.
double least_gpu_memory(const Profile& profile) {
  double least = 0;
  for (const auto& [device, runs] : profile.on) {
    if (!device.starts_with(kGpuPrefix)) continue;
    const auto known = gpu_kind(whole_device(device).substr(kGpuPrefix.size()));
    if (!known) return 0;
    const auto memory = static_cast<double>(known->memory);
    least = least > 0 ? std::min(least, memory) : memory;
  }
  return least;
}

/// Whether so many side by side on one device did more together than one after the other, or
/// nobody has seen it yet.
bool is_worth_packing(const Profile& profile, double asked, double part) {
  constexpr double kTogether = 1.1;
  for (const auto& [device, runs] : profile.on) {
    const auto packed = profile.on.find(packed_on(device, part));
    if (packed == profile.on.end() || packed->second.count < kFewestRuns) continue;
    const double speed = std::exp(runs.mean - packed->second.mean);
    if (asked / part * speed < kTogether) return false;
  }
  return true;
}

constexpr std::array<std::string_view, 4> kWords{"kind", "site", "client", "day"};

std::string key_of(const Cell& cell, By by) {
  switch (by) {
    case By::Kind:
      return cell.kind;
    case By::Site:
      return cell.site;
    case By::Client:
      return cell.client;
    case By::Day:
      return show_day(cell.day);
  }
  return "";
}

}  // namespace

double memory_enough(const Profile& profile) {
  if (profile.memory.count() < kFewestRuns) return 0;
  return rounded_up(profile.memory.quantile(kAll) * kMemoryRoom);
}

double memory_for_most(const Profile& profile) {
  if (profile.memory.count() < kFewestRuns) return 0;
  return rounded_up(profile.memory.quantile(kMost) * kMemoryRoom);
}

double cpus_enough(const Profile& profile) {
  if (profile.cpus.count() < kFewestRuns) return 0;
  const double busy = profile.cpus.quantile(kMost);
  // The last tenth of a cpu is noise.
  if (busy <= 0.25) return 0.25;
  if (busy <= 0.55) return 0.5;
  return std::max(1.0, std::ceil(busy - 0.1));
}

double gpus_enough(const Profile& profile) {
  // Two that each keep a GPU busy for 80 of 100 seconds do a fifth more together even where they
  // take turns, and mostly more (Hu et al., "Lucid", ASPLOS 2023: pairs of all together 90 and more
  // did 1.6 times as much); of four and eight each waits for more turns.
  struct Part {
    double of_one, busiest;
  };
  static constexpr std::array kParts{Part{0.5, 0.8}, Part{0.25, 0.3}, Part{0.125, 0.15}};
  // What was seen once a second is not all.
  constexpr double kGpuMemoryRoom = 0.9;
  const double asked = profile.gpus_asked, memory = least_gpu_memory(profile);
  // Of several each task knows why.
  if (asked <= 0 || asked > 1 || memory <= 0 || profile.gpu_busy.count() < kFewestRuns) return 0;
  const double busy = profile.gpu_busy.quantile(kMost) / 100;
  const double taken = profile.gpu_memory.quantile(kAll);
  double enough = 0;
  for (const Part& part : kParts) {
    if (part.of_one < asked && busy <= part.busiest &&
        taken <= part.of_one * memory * kGpuMemoryRoom &&
        is_worth_packing(profile, asked, part.of_one))
      enough = part.of_one;
  }
  return enough;
}

std::vector<Advice> advice_for(const std::vector<KindUse>& kinds, std::size_t most) {
  std::vector<Advice> all;
  double memory_of_all = 0, cpus_of_all = 0, gpus_of_all = 0;
  for (const auto& [kind, usage, profile] : kinds) {
    memory_of_all += usage.memory_asked;
    cpus_of_all += usage.cpu_asked;
    gpus_of_all += usage.gpu_asked;
    if (kind == kOtherKinds) continue;  // what is enough for one says nothing of the others
    const double memory = profile.memory_asked, cpus = profile.cpus_asked;
    if (memory > 0) {
      add_saving(
          all,
          {kind, Advice::What::Memory, memory, memory_enough(profile), 0, profile.memory.count()},
          usage.memory_asked);
    }
    add_saving(all,
               {kind, Advice::What::Gpus, profile.gpus_asked, gpus_enough(profile), 0,
                profile.gpu_busy.count()},
               usage.gpu_asked);
    // Of short runs it is not known how busy they kept their cpus: a few long ones say nothing of
    // those.
    if (profile.cpus.count() < kMostRuns * profile.run.count()) continue;
    add_saving(all, {kind, Advice::What::Cpus, cpus, cpus_enough(profile), 0, profile.cpus.count()},
               usage.cpu_asked);
  }
  const auto share = [&](const Advice& one) {
    const double whole = one.what == Advice::What::Memory ? memory_of_all
                         : one.what == Advice::What::Gpus ? gpus_of_all
                                                          : cpus_of_all;
    return whole > 0 ? one.saves / whole : 0;
  };
  std::sort(all.begin(), all.end(), [&](const Advice& a, const Advice& b) {
    return std::tuple(-share(a), a.kind, a.what) < std::tuple(-share(b), b.kind, b.what);
  });
  if (all.size() > most) all.resize(most);
  return all;
}

std::optional<By> parse_by(std::string_view word) {
  const auto at = std::find(kWords.begin(), kWords.end(), word);
  if (at == kWords.end()) return std::nullopt;
  return static_cast<By>(at - kWords.begin());
}

std::string show_day(std::int32_t day) {
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{day}}};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

Usage sum_of(const UsageRows& rows) {
  Usage sum;
  for (const auto& [cell, usage] : rows) sum += usage;
  return sum;
}

std::vector<std::pair<std::string, Usage>> put_together(const UsageRows& rows, By by) {
  std::map<std::string, Usage> sums;
  for (const auto& [cell, usage] : rows) sums[key_of(cell, by)] += usage;
  std::vector<std::pair<std::string, Usage>> all(sums.begin(), sums.end());
  if (by != By::Day) {
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.second.cpu_asked > b.second.cpu_asked;
    });
  }
  return all;
}

std::vector<KindUse> kinds_of(const UsageRows& rows,
                              const std::vector<std::pair<std::string, Profile>>& profiles) {
  const std::map<std::string, Profile> known(profiles.begin(), profiles.end());
  std::vector<KindUse> kinds;
  for (auto& [kind, usage] : put_together(rows, By::Kind)) {
    const auto at = known.find(kind);
    kinds.push_back({kind, usage, at == known.end() ? Profile{} : at->second});
  }
  return kinds;
}

}  // namespace hpcbatch::records
