#include "broker/broker.hpp"

#include <algorithm>
#include <cmath>

namespace hpcbatch::broker {
namespace {

// Of fewer tasks a trial would cost more than what is learned by it can bring.
constexpr double kWorthTrials = 4;

std::optional<std::size_t> index_of(const std::vector<Device>& devices, std::string_view name) {
  for (std::size_t at = 0; at < devices.size(); ++at) {
    if (devices[at].name == name && devices[at].units > 0) return at;
  }
  return std::nullopt;
}

}  // namespace

void Broker::weigh(const std::vector<Device>& devices, const std::vector<Waiting>& waiting,
                   OnTrial on_trial) {
  classes_.clear();
  std::vector<double> units, busy;
  for (const Device& device : devices) {
    units.push_back(std::max(device.units, 1e-9));
    busy.push_back(device.busy);
  }
  std::vector<Work> all;
  std::vector<std::vector<double>> seconds;
  for (const Waiting& one : waiting) {
    Work work{one.tasks, std::vector<double>(devices.size(), kNever)};
    std::vector<double> takes(devices.size(), kNever);
    for (const Way& way : one.ways) {
      const auto at = index_of(devices, way.device);
      if (!at) continue;
      takes[*at] = speeds_.seconds(one.kind, way.device).value_or(one.seconds);
      work.cost[*at] = std::max(1e-9, takes[*at] * way.units);
    }
    all.push_back(std::move(work));
    seconds.push_back(std::move(takes));
  }
  const Prices prices = match(units, busy, all);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const Waiting& one = waiting[i];
    Class& its_class = classes_[one.id];
    its_class.kind = one.kind;
    double soonest = kNever;
    std::size_t places = 0;
    for (std::size_t at = 0; at < devices.size(); ++at) {
      if (!std::isfinite(seconds[i][at])) continue;
      soonest = std::min(soonest, prices.until[at] + seconds[i][at]);
      ++places;
    }
    for (std::size_t at = 0; at < devices.size(); ++at) {
      if (!std::isfinite(seconds[i][at])) continue;
      const std::string& name = devices[at].name;
      Option option{name, regret(prices, all[i], at), seconds[i][at] > soonest, 0};
      const Runs* known = speeds_.find(one.kind, name);
      const auto now = on_trial.find({one.kind, name});
      const double tried = (known ? known->count : 0) + (now == on_trial.end() ? 0 : now->second);
      if (places > 1 && one.tasks >= kWorthTrials * kTrials * static_cast<double>(places))
        option.trials_left = std::max(0.0, kTrials - tried);
      its_class.options.push_back(std::move(option));
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
