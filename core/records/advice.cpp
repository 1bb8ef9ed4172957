#include "records/advice.hpp"

#include "records/kind.hpp"

#include <algorithm>
#include <cmath>
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

std::vector<Advice> advice_for(const std::vector<KindUse>& kinds, std::size_t most) {
  std::vector<Advice> all;
  double memory_of_all = 0, cpus_of_all = 0;
  for (const auto& [kind, usage, profile] : kinds) {
    memory_of_all += usage.memory_asked;
    cpus_of_all += usage.cpu_asked;
    if (kind == kOtherKinds) continue;  // what is enough for one says nothing of the others
    const double memory = profile.memory_asked, cpus = profile.cpus_asked;
    if (memory > 0) {
      add_saving(
          all,
          {kind, Advice::What::Memory, memory, memory_enough(profile), 0, profile.memory.count()},
          usage.memory_asked);
    }
    // Of short runs it is not known how busy they kept their cpus: a few long ones say nothing of
    // those.
    if (profile.cpus.count() < kMostRuns * profile.run.count()) continue;
    add_saving(all, {kind, Advice::What::Cpus, cpus, cpus_enough(profile), 0, profile.cpus.count()},
               usage.cpu_asked);
  }
  const auto share = [&](const Advice& one) {
    const double whole = one.what == Advice::What::Memory ? memory_of_all : cpus_of_all;
    return whole > 0 ? one.saves / whole : 0;
  };
  std::sort(all.begin(), all.end(), [&](const Advice& a, const Advice& b) {
    return std::tuple(-share(a), a.kind, a.what) < std::tuple(-share(b), b.kind, b.what);
  });
  if (all.size() > most) all.resize(most);
  return all;
}

}  // namespace hpcbatch::records
