#include "foresight/replay/fidelity.hpp"

#include "foresight/look_ahead.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <tuple>

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

namespace {

ClusterModel::Backfill backfill_of(const std::string& word) {
  if (word == "easy") return ClusterModel::Backfill::Easy;
  if (word == "none") return ClusterModel::Backfill::None;
  return ClusterModel::Backfill::Conservative;
}

}  // namespace

ClusterModel large_site(std::int32_t nodes, const std::string& backfill) {
  ClusterModel model;
  model.nodes = {{0, nodes}};
  model.backfill = backfill_of(backfill);
  model.backfill_interval = 10 * kMinute;
  model.resolution = 10 * kMinute;
  model.window = 2 * kDay;
  model.most_tested = 3000;
  model.age_weight = 7000;
  model.size_weight = 100;
  return model;
}

namespace {

constexpr Seconds kBucket = 4 * kHour;
constexpr Seconds kHasWaited = 10 * kMinute;
constexpr Seconds kStartsAfterEnd = kMinute;
/// So many users at the same most are no chance.
constexpr int kUsersAtBound = 10;

using Steps = std::vector<std::pair<Seconds, std::int32_t>>;

/// Nodes in use from each moment on.
Steps use_over_time(const Trace& trace) {
  Steps changes;
  changes.reserve(2 * trace.jobs.size());
  for (const TracedJob& traced : trace.jobs) {
    if (traced.job.runs == 0) continue;
    changes.emplace_back(traced.started, traced.job.nodes);
    changes.emplace_back(traced.ended(), -traced.job.nodes);
  }
  std::sort(changes.begin(), changes.end());
  Steps use;
  std::int32_t in_use = 0;
  for (const auto& [when, more] : changes) {
    in_use += more;
    if (!use.empty() && use.back().first == when)
      use.back().second = in_use;
    else
      use.emplace_back(when, in_use);
  }
  return use;
}

std::int32_t at(const Steps& steps, Seconds when) {
  const auto next =
      std::upper_bound(steps.begin(), steps.end(), when,
                       [](Seconds moment, const auto& step) { return moment < step.first; });
  return next == steps.begin() ? 0 : std::prev(next)->second;
}

}  // namespace

Steps nodes_over_time(const Trace& trace) {
  const Steps use = use_over_time(trace);
  std::map<Seconds, std::int32_t> most;
  for (std::size_t i = 0; i < use.size(); ++i) {
    const Seconds until = i + 1 < use.size() ? use[i + 1].first : use[i].first;
    for (Seconds bucket = use[i].first / kBucket; bucket <= until / kBucket; ++bucket)
      most[bucket] = std::max(most[bucket], use[i].second);
  }
  Steps nodes;
  for (const auto& [bucket, count] : most) {
    std::int32_t around = count;
    for (const Seconds beside : {bucket - 1, bucket + 1}) {
      const auto found = most.find(beside);
      if (found != most.end()) around = std::max(around, found->second);
    }
    nodes.emplace_back(bucket * kBucket, std::max(around, 1));
  }
  if (nodes.empty()) nodes.emplace_back(0, 1);
  return nodes;
}

std::int32_t most_nodes_in_use(const Trace& trace) {
  std::int32_t most = 1;
  for (const auto& [when, in_use] : use_over_time(trace)) most = std::max(most, in_use);
  return most;
}

std::size_t find_dependencies(Trace& trace, const Steps& nodes) {
  const Steps use = use_over_time(trace);
  std::map<std::int32_t, std::vector<std::pair<Seconds, std::size_t>>> ends;  // by user
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    if (trace.jobs[i].job.user >= 0)
      ends[trace.jobs[i].job.user].emplace_back(trace.jobs[i].ended(), i);
  }
  for (auto& [user, of_user] : ends) std::sort(of_user.begin(), of_user.end());
  std::size_t found = 0;
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    TracedJob& traced = trace.jobs[i];
    if (traced.job.user < 0 || traced.started - traced.job.submitted < kHasWaited) continue;
    const auto& of_user = ends[traced.job.user];
    auto last = std::upper_bound(of_user.begin(), of_user.end(),
                                 std::pair{traced.started, trace.jobs.size()});
    if (last == of_user.begin()) continue;
    --last;
    const auto [ended, before] = *last;
    if (traced.started - ended > kStartsAfterEnd || before >= i) continue;
    if (trace.jobs[before].started >= traced.started) continue;
    if (at(nodes, ended) - at(use, ended - 1) < traced.job.nodes) continue;
    traced.job.after = static_cast<std::uint32_t>(before);
    ++found;
  }
  return found;
}

std::int32_t bound_of_users(const Trace& trace) {
  std::vector<std::tuple<Seconds, std::int32_t, std::int32_t>> changes;
  for (const TracedJob& traced : trace.jobs) {
    if (traced.job.user < 0 || traced.job.runs == 0) continue;
    changes.emplace_back(traced.started, 1, traced.job.user);
    changes.emplace_back(traced.ended(), -1, traced.job.user);
  }
  std::sort(changes.begin(), changes.end());
  std::map<std::int32_t, std::pair<std::int32_t, std::int32_t>> jobs;  // now and at most, by user
  for (const auto& [when, more, user] : changes) {
    auto& [now, most] = jobs[user];
    now += more;
    most = std::max(most, now);
  }
  std::map<std::int32_t, int> users;  // by their most
  for (const auto& [user, counts] : jobs) ++users[counts.second];
  if (users.empty()) return 0;
  const auto [most, count] = *users.rbegin();
  return count >= kUsersAtBound ? most : 0;
}

}  // namespace hpcbatch::foresight
