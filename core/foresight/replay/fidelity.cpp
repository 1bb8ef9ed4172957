#include "foresight/replay/fidelity.hpp"

#include "foresight/look_ahead.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace hpcbatch::foresight {
namespace {

class Sums {
 public:
  void add(Seconds wait, double node_hours) {
    waits_.push_back(wait);
    sum_ += static_cast<double>(wait);
    weighted_ += static_cast<double>(wait) * node_hours;
    weights_ += node_hours;
    at_once_ += wait < kMinute ? 1 : 0;
  }
  Waits all() {
    if (waits_.empty()) return {};
    std::sort(waits_.begin(), waits_.end());
    const auto count = static_cast<double>(waits_.size());
    Waits waits;
    waits.mean = sum_ / count / kHour;
    waits.by_node_hours = weights_ > 0 ? weighted_ / weights_ / kHour : 0;
    waits.median = static_cast<double>(quantile(waits_, 0.5)) / kHour;
    waits.most_of_ten = static_cast<double>(quantile(waits_, 0.9)) / kHour;
    waits.at_once = at_once_ / count;
    return waits;
  }

 private:
  std::vector<Seconds> waits_;
  double sum_{0}, weighted_{0}, weights_{0}, at_once_{0};
};

class Correlation {
 public:
  void add(double one, double other) {
    ++count_;
    one_ += one;
    other_ += other;
    one_square_ += one * one;
    other_square_ += other * other;
    both_ += one * other;
  }
  double value() const {
    const double spread =
        (one_square_ - one_ * one_ / count_) * (other_square_ - other_ * other_ / count_);
    return spread > 0 ? (both_ - one_ * other_ / count_) / std::sqrt(spread) : 0;
  }

 private:
  double count_{0}, one_{0}, other_{0}, one_square_{0}, other_square_{0}, both_{0};
};

}  // namespace

Fidelity play_trace(const Trace& trace, const ClusterModel& model, Seconds warm_up) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const Seconds first = trace.jobs.front().job.submitted;
  Cluster cluster(model, first);
  std::vector<Cluster::Id> ids;
  ids.reserve(trace.jobs.size());
  for (const TracedJob& traced : trace.jobs) {
    cluster.advance(traced.job.submitted);
    ids.push_back(cluster.submit(traced.job));
  }
  for (auto next = cluster.next_event(); next; next = cluster.next_event()) cluster.advance(*next);
  // Before the first start accounting has only those that waited until then.
  Seconds counted = trace.jobs.front().started;
  for (const TracedJob& traced : trace.jobs) counted = std::min(counted, traced.started);
  counted = std::max(counted, first) + warm_up;
  Fidelity result;
  result.took = std::chrono::duration<double>(Clock::now() - begin).count();
  result.traced = static_cast<double>(trace.jobs.back().job.submitted - first) / kHour;
  Sums real, played;
  Correlation logs;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const TracedJob& traced = trace.jobs[i];
    const auto started = cluster.started(ids[i]);
    if (traced.job.submitted < counted) continue;
    if (!started) {
      ++result.never_started;
      continue;
    }
    const Seconds wait = traced.started - traced.job.submitted;
    const Seconds would_wait = *started - traced.job.submitted;
    const double node_hours =
        static_cast<double>(traced.job.nodes) * static_cast<double>(traced.job.runs) / kHour;
    real.add(wait, node_hours);
    played.add(would_wait, node_hours);
    logs.add(std::log10(static_cast<double>(wait) + 1),
             std::log10(static_cast<double>(would_wait) + 1));
    result.mean_error += std::abs(static_cast<double>(wait - would_wait)) / kHour;
    ++result.jobs;
  }
  result.real = real.all();
  result.played = played.all();
  result.correlation = logs.value();
  if (result.jobs != 0) result.mean_error /= static_cast<double>(result.jobs);
  return result;
}

}  // namespace hpcbatch::foresight
