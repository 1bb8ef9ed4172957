#include "replay/episodes.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <deque>

namespace hpcbatch::foresight {
namespace {

constexpr Seconds kWarmUp = 2 * kDay;
constexpr Seconds kTraced = 5 * kDay;
constexpr std::size_t kLastWaits = 100;
constexpr std::size_t kAtOnce = 32;
constexpr double kMonteCarlo = 0.7;
constexpr double kOfLastWaits = 0.95;

/// The cluster of an episode, with the trace's jobs coming to it.
class Stage {
 public:
  Stage(const std::vector<TracedJob>& jobs, const ClusterModel& model, Seconds start)
      : jobs_(&jobs), until_(start + kTraced), cluster_(model, start) {
    next_ = static_cast<std::size_t>(std::lower_bound(jobs.begin(), jobs.end(), start,
                                                      [](const TracedJob& traced, Seconds when) {
                                                        return traced.job.submitted < when;
                                                      }) -
                                     jobs.begin());
  }

  void advance(Seconds until) {
    for (auto next = next_submit(); next && *next <= until; next = next_submit()) {
      cluster_.advance(*next);
      Job job = (*jobs_)[next_++].job;
      job.after.reset();  // what it came after may be of before the episode
      cluster_.submit(job);
    }
    cluster_.advance(until);
  }

  /// When a job that is submitted now starts.
  Seconds start_of(const Job& job) && {
    const Cluster::Id id = cluster_.submit(job);
    while (!cluster_.started(id)) {
      const auto event = cluster_.next_event();
      const auto submit = next_submit();
      if (!event && !submit) return cluster_.now();
      advance(std::min(event.value_or(submit.value_or(0)), submit.value_or(event.value_or(0))));
    }
    return *cluster_.started(id);
  }

  Cluster& cluster() { return cluster_; }

 private:
  std::optional<Seconds> next_submit() const {
    if (next_ >= jobs_->size() || (*jobs_)[next_].job.submitted >= until_) return std::nullopt;
    return (*jobs_)[next_].job.submitted;
  }

  const std::vector<TracedJob>* jobs_;
  Seconds until_;
  std::size_t next_{0};
  Cluster cluster_;
};

/// What has happened is seen once.
class Watcher {
 public:
  explicit Watcher(RunTimes times) : times_(std::move(times)) {}

  void look(const Cluster& cluster) {
    const std::size_t count = cluster.count();
    start_seen_.resize(count, false);
    end_seen_.resize(count, false);
    for (std::size_t i = 0; i < count; ++i) {
      const auto id = static_cast<Cluster::Id>(i);
      if (!start_seen_[i] && cluster.started(id)) {
        start_seen_[i] = true;
        waits_.push_back(*cluster.started(id) - cluster.job(id).submitted);
        if (waits_.size() > kLastWaits) waits_.pop_front();
      }
      if (!end_seen_[i] && cluster.ended(id)) {
        end_seen_[i] = true;
        times_.learn(cluster.job(id));
      }
    }
  }
  const RunTimes& times() const { return times_; }
  const std::deque<Seconds>& waits() const { return waits_; }

 private:
  RunTimes times_;
  std::deque<Seconds> waits_;
  std::vector<bool> start_seen_, end_seen_;
};

QueueView seen(const Cluster& cluster, const Episodes& how) {
  QueueView view;
  view.now = cluster.now();
  view.nodes = how.model.nodes.front().second;
  const auto is_hidden = [&](Cluster::Id id) {
    return how.hides_each != 0 && id % how.hides_each == 0;
  };
  for (const Cluster::Id id : cluster.running()) {
    // Nodes in use are seen also where the job is not.
    if (is_hidden(id))
      view.nodes -= cluster.job(id).nodes;
    else
      view.running.push_back({cluster.job(id), *cluster.started(id)});
  }
  for (const Cluster::Id id : cluster.waiting()) {
    if (!is_hidden(id)) view.waiting.push_back(cluster.job(id));
  }
  if (!how.knows_order) {
    std::stable_sort(
        view.waiting.begin(), view.waiting.end(),
        [](const Job& one, const Job& other) { return one.submitted < other.submitted; });
  }
  return view;
}

/// What the policies know at one moment; drawn when the first asks for it.
class Moment {
 public:
  Moment(const Cluster& cluster, const Watcher& watcher, const Episodes& how, const Job& pilot,
         std::uint32_t seed)
      : view_(seen(cluster, how)), watcher_(watcher), how_(how), pilot_(pilot), seed_(seed) {}

  const std::vector<Seconds>& drawn() {
    if (drawn_.empty()) drawn_ = starts(&watcher_.times());
    return drawn_;
  }
  bool says_now(Policy policy, Seconds supply_ends) {
    const auto& waits = watcher_.waits();
    switch (policy) {
      case Policy::Reactive:
        return false;
      case Policy::Mean: {
        if (waits.empty()) return false;
        Seconds sum = 0;
        for (const Seconds wait : waits) sum += wait;
        return view_.now + sum / static_cast<Seconds>(waits.size()) >= supply_ends;
      }
      case Policy::Quantile: {
        if (waits.empty()) return false;
        std::vector<Seconds> sorted(waits.begin(), waits.end());
        std::sort(sorted.begin(), sorted.end());
        return view_.now + quantile(sorted, kOfLastWaits) >= supply_ends;
      }
      case Policy::LookAhead:
        return starts(nullptr).front() >= supply_ends;
      case Policy::MonteCarlo:
        return quantile(drawn(), kMonteCarlo) >= supply_ends;
      case Policy::AskAhead:
        return is_time_to_ask(drawn(), supply_ends, how_.costs);
    }
    return false;
  }

 private:
  std::vector<Seconds> starts(const RunTimes* times) const {
    Draws draws = how_.draws;
    draws.seed += seed_;
    return draw_starts(view_, how_.model, times, pilot_, draws);
  }

  QueueView view_;
  const Watcher& watcher_;
  const Episodes& how_;
  const Job& pilot_;
  std::uint32_t seed_;
  std::vector<Seconds> drawn_;
};

struct OneResult {
  std::vector<double> gaps;
  Bounded bounded;
};

OneResult play_one(const std::vector<TracedJob>& jobs, const Episodes& how, Seconds start,
                   RunTimes times) {
  OneResult result;
  result.gaps.assign(how.policies.size(), 0);
  Stage stage(jobs, how.cluster, start);
  Watcher watcher(std::move(times));
  stage.advance(start + kWarmUp);
  watcher.look(stage.cluster());
  Job pilot;
  pilot.submitted = start + kWarmUp;
  pilot.limit = pilot.runs = how.pilot_time;
  pilot.nodes = how.pilot_nodes;
  const std::vector<Seconds> first = Moment(stage.cluster(), watcher, how, pilot, 0).drawn();
  const Cluster::Id id = stage.cluster().submit(pilot);
  std::vector<bool> sent(how.policies.size(), false);
  std::size_t open = sent.size();
  for (Seconds now = pilot.submitted; open != 0; now += how.step) {
    // One that ends between two looks is succeeded at its end.
    if (const auto ended = stage.cluster().started(id); ended && *ended + how.pilot_time < now)
      now = *ended + how.pilot_time;
    stage.advance(now);
    const auto started = stage.cluster().started(id);
    if (!started) continue;
    const Seconds ends = *started + how.pilot_time;
    watcher.look(stage.cluster());
    Job next = pilot;
    next.submitted = now;
    Moment moment(stage.cluster(), watcher, how, next,
                  static_cast<std::uint32_t>(now / std::max<Seconds>(how.step, 1)));
    std::optional<double> gap;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      if (sent[i] || (now < ends && !moment.says_now(how.policies[i], ends))) continue;
      if (!gap) gap = static_cast<double>(Stage(stage).start_of(next) - ends) / kHour;
      result.gaps[i] = *gap;
      sent[i] = true;
      --open;
    }
  }
  const Seconds began = *stage.cluster().started(id);
  result.bounded = {began <= quantile(first, 0.5), began <= quantile(first, 0.9)};
  return result;
}

}  // namespace

std::string name_of(Policy policy) {
  switch (policy) {
    case Policy::Reactive:
      return "reactive";
    case Policy::Mean:
      return "mean of 100 waits";
    case Policy::Quantile:
      return "95 % of 100 waits";
    case Policy::LookAhead:
      return "look-ahead, limits";
    case Policy::MonteCarlo:
      return "look-ahead, 70 %";
    case Policy::AskAhead:
      return "asking ahead";
  }
  return "";
}

double PolicyResult::interruption() const {
  double sum = 0;
  for (const double gap : gaps) sum += std::max(gap, 0.0);
  return gaps.empty() ? 0 : sum / static_cast<double>(gaps.size());
}

double PolicyResult::overlap() const {
  double sum = 0;
  for (const double gap : gaps) sum += std::max(-gap, 0.0);
  return gaps.empty() ? 0 : sum / static_cast<double>(gaps.size());
}

double PolicyResult::uninterrupted() const {
  const auto count = std::count_if(gaps.begin(), gaps.end(), [](double gap) { return gap <= 0; });
  return gaps.empty() ? 0 : static_cast<double>(count) / static_cast<double>(gaps.size());
}

EpisodeResults play_episodes(const Trace& trace, const Episodes& episodes,
                             const std::function<bool(std::size_t, std::size_t)>& done) {
  // What had ended before each started is known then.
  std::vector<const TracedJob*> by_end;
  by_end.reserve(trace.jobs.size());
  for (const TracedJob& traced : trace.jobs) by_end.push_back(&traced);
  std::stable_sort(by_end.begin(), by_end.end(), [](const auto* one, const auto* other) {
    return one->ended() < other->ended();
  });
  std::vector<OneResult> results;
  RunTimes times;
  std::size_t learned = 0;
  std::atomic<std::size_t> count{0};
  std::atomic<bool> goes_on{true};
  const auto in_all =
      static_cast<std::size_t>((episodes.until - episodes.from) / episodes.every + 1);
  // Some at a time: each has run times of its own to learn on with.
  while (results.size() < in_all && goes_on) {
    const std::size_t first = results.size();
    const std::size_t some = std::min(kAtOnce, in_all - first);
    std::vector<RunTimes> known;
    std::vector<Seconds> starts;
    for (std::size_t i = 0; i < some; ++i) {
      starts.push_back(episodes.from + static_cast<Seconds>(first + i) * episodes.every);
      while (learned < by_end.size() && by_end[learned]->ended() < starts.back())
        times.learn(by_end[learned++]->job);
      known.push_back(times);
    }
    results.resize(first + some);
    tbb::parallel_for(std::size_t{0}, some, [&](std::size_t i) {
      if (!goes_on) return;
      results[first + i] = play_one(trace.jobs, episodes, starts[i], std::move(known[i]));
      if (!done(++count, in_all)) goes_on = false;
    });
  }
  EpisodeResults all;
  for (std::size_t policy = 0; policy < episodes.policies.size(); ++policy) {
    all.policies.push_back({episodes.policies[policy], {}});
    for (const OneResult& one : results) {
      if (!one.gaps.empty()) all.policies.back().gaps.push_back(one.gaps[policy]);
    }
  }
  for (const OneResult& one : results) {
    if (!one.gaps.empty()) all.bounds.push_back(one.bounded);
  }
  return all;
}

}  // namespace hpcbatch::foresight
