#include "broker/broker.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hpcbatch::broker {
namespace {

constexpr int kRounds = 400;
constexpr double kFirstStep = 0.5;

std::size_t cheapest(const std::vector<double>& prices, const std::vector<double>& cost) {
  std::size_t best = 0;
  double least = kNever;
  for (std::size_t at = 0; at < cost.size(); ++at) {
    const double paid = prices[at] * cost[at];
    if (paid < least) {
      least = paid;
      best = at;
    }
  }
  return best;
}

bool runs_somewhere(const Work& work) {
  return work.tasks > 0 && std::any_of(work.cost.begin(), work.cost.end(),
                                       [](double cost) { return std::isfinite(cost); });
}

/// So that all units together cost 1.
void normalise(std::vector<double>& prices, const std::vector<double>& units) {
  const double sum = std::inner_product(prices.begin(), prices.end(), units.begin(), 0.0);
  for (double& price : prices) price /= sum;
}

// Of fewer tasks on each device one trial would cost more than what is learned by it can bring.
constexpr double kWorthTrial = 4;
// More than prices differ: one place further back in its user's order.
constexpr double kPerPlace = 1e6;

/// Runs that a third would tell little more than.
bool agree(const Runs& runs) {
  constexpr double kApart = 0.2;  // the slower takes half as long again
  return runs.count >= 2 && std::sqrt(runs.variance) < kApart;
}

std::optional<std::size_t> index_of(const std::vector<Device>& devices, std::string_view name) {
  for (std::size_t at = 0; at < devices.size(); ++at) {
    if (devices[at].name == name && devices[at].units > 0) return at;
  }
  return std::nullopt;
}

/// Seconds of a run on each device, kNever where it cannot run.
std::vector<double> takes_on(const SpeedTable& speeds, const std::vector<Device>& devices,
                             const Waiting& one) {
  std::vector<double> takes(devices.size(), kNever);
  for (const Way& way : one.ways) {
    if (const auto at = index_of(devices, way.device))
      takes[*at] = speeds.hoped_seconds(one.kind, way.device).value_or(one.seconds);
  }
  return takes;
}

Work work_of(const std::vector<Device>& devices, const Waiting& one,
             const std::vector<double>& takes) {
  Work work{one.tasks, std::vector<double>(devices.size(), kNever)};
  for (const Way& way : one.ways) {
    if (const auto at = index_of(devices, way.device))
      work.cost[*at] = std::max(1e-9, takes[*at] * way.units);
  }
  return work;
}

double order_of(const Waiting& one, const std::string& device) {
  const auto way = std::find_if(one.ways.begin(), one.ways.end(),
                                [&](const Way& each) { return each.device == device; });
  return way == one.ways.end() ? 0 : static_cast<double>(way->order);
}

}  // namespace

Prices match(const std::vector<double>& units, const std::vector<double>& busy,
             const std::vector<Work>& all) {
  const std::size_t devices = units.size();
  // Of both the mean over all rounds.
  Prices mean{std::vector<double>(devices, 0), std::vector<double>(devices, 0)};
  if (devices == 0) return mean;
  std::vector<double> prices(devices, 1);
  normalise(prices, units);
  for (int round = 1; round <= kRounds; ++round) {
    std::vector<double> load = busy;
    for (const Work& work : all) {
      if (!runs_somewhere(work)) continue;
      const std::size_t at = cheapest(prices, work.cost);
      load[at] += work.tasks * work.cost[at];
    }
    for (std::size_t at = 0; at < devices; ++at) {
      mean.of[at] += prices[at] / kRounds;
      mean.until[at] += load[at] / units[at] / kRounds;
    }
    double highest = 0;
    for (std::size_t at = 0; at < devices; ++at) highest = std::max(highest, load[at] / units[at]);
    if (highest <= 0) break;
    const double step = kFirstStep / std::sqrt(round);
    for (std::size_t at = 0; at < devices; ++at)
      prices[at] *= std::exp(step * (load[at] / units[at] / highest - 1));
    normalise(prices, units);
  }
  return mean;
}

double regret(const Prices& prices, const Work& work, std::size_t device) {
  if (!std::isfinite(work.cost[device])) return kNever;
  const std::size_t best = cheapest(prices.of, work.cost);
  return prices.of[device] * work.cost[device] / (prices.of[best] * work.cost[best]);
}

/// Whether it ran on any device on which it can run.
bool Broker::is_known(const Waiting& one) const {
  return std::any_of(one.ways.begin(), one.ways.end(),
                     [&](const Way& way) { return speeds_.find(one.kind, way.device) != nullptr; });
}

/// Of a kind: what waits, runs, and ran anywhere.
double Broker::count_of(const Waiting& one, const Running& running) const {
  double count = one.tasks;
  for (const auto& [where, now] : running) {
    if (where.first == one.kind) count += now;
  }
  const auto known = speeds_.kinds().find(one.kind);
  if (known == speeds_.kinds().end()) return count;
  for (const auto& [device, runs] : known->second) count += runs.count;
  return count;
}

double Broker::trials_left(const Waiting& one, const std::string& device, std::size_t places,
                           const Running& running) const {
  if (places < 2 || one.tasks < kWorthTrial) return 0;
  // What has been seen of it counts, not what still waits: that falls while trials are on their way.
  const double worth =
      std::floor(count_of(one, running) / (kWorthTrial * static_cast<double>(places)));
  const Runs* known = speeds_.find(one.kind, device);
  const auto now = running.find({one.kind, device});
  const double tried = (known ? known->count : 0) + (now == running.end() ? 0 : now->second);
  const double trials = known && agree(*known) ? kTrials - 1 : kTrials;
  return std::max(0.0, std::min(trials, worth) - tried);
}

void Broker::weigh(const std::vector<Device>& devices, const std::vector<Waiting>& waiting,
                   const Running& running) {
  classes_.clear();
  std::vector<double> units, busy;
  for (const Device& device : devices) {
    units.push_back(std::max(device.units, 1e-9));
    busy.push_back(device.busy);
  }
  std::vector<std::vector<double>> takes;
  std::vector<Work> all;
  for (const Waiting& one : waiting) {
    takes.push_back(takes_on(speeds_, devices, one));
    all.push_back(work_of(devices, one, takes.back()));
  }
  const Prices prices = match(units, busy, all);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    Class& its_class = classes_[waiting[i].id];
    its_class.kind = waiting[i].kind;
    std::vector<std::size_t> places;
    double soonest = kNever;
    for (std::size_t at = 0; at < devices.size(); ++at) {
      if (!std::isfinite(takes[i][at])) continue;
      soonest = std::min(soonest, prices.until[at] + takes[i][at]);
      places.push_back(at);
    }
    const bool goes_by_order = !is_known(waiting[i]);
    for (const std::size_t at : places) {
      // Who wrote the ways down knows more than nothing.
      const double order = goes_by_order ? order_of(waiting[i], devices[at].name) : 0;
      its_class.options.push_back(
          {devices[at].name, regret(prices, all[i], at) + order * kPerPlace, takes[i][at] > soonest,
           trials_left(waiting[i], devices[at].name, places.size(), running)});
    }
  }
}

Broker::Place Broker::place(std::uint32_t id, std::string_view device) const {
  const auto at = classes_.find(id);
  if (at == classes_.end()) return {};
  for (const Option& option : at->second.options) {
    if (option.device != device) continue;
    if (option.trials_left >= 1) return {0, false};
    return {option.rank, option.is_left};
  }
  return {};
}

void Broker::taken(std::uint32_t id, std::string_view device) {
  const auto at = classes_.find(id);
  if (at == classes_.end()) return;
  // Those of its kind that ask for something else count with it.
  for (auto& [other, its_class] : classes_) {
    if (its_class.kind != at->second.kind) continue;
    for (Option& option : its_class.options) {
      if (option.device == device) option.trials_left = std::max(0.0, option.trials_left - 1);
    }
  }
}

}  // namespace hpcbatch::broker
