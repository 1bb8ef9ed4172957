#include "foresight/cluster.hpp"

#include <algorithm>

namespace hpcbatch::foresight {

Timeline::Timeline(std::size_t slots, std::int32_t most_nodes)
    : free_(std::max<std::size_t>(slots, 1), 0),
      not_before_(static_cast<std::size_t>(std::max(most_nodes, 0)) + 1, 0) {}

void Timeline::reset(std::int32_t free_now) {
  std::fill(free_.begin(), free_.end(), 0);
  free_.front() = free_now;
  std::fill(not_before_.begin(), not_before_.end(), 0);
}

void Timeline::frees(std::size_t slot, std::int32_t nodes) {
  if (slot < free_.size()) free_[slot] += nodes;
}

void Timeline::settle() {
  for (std::size_t i = 1; i < free_.size(); ++i) free_[i] += free_[i - 1];
}

std::optional<std::size_t> Timeline::earliest(std::int32_t nodes, std::size_t slots) {
  if (nodes >= static_cast<std::int32_t>(not_before_.size())) return std::nullopt;
  std::uint32_t& first = not_before_[static_cast<std::size_t>(std::max(nodes, 0))];
  while (first < free_.size() && free_[first] < nodes) ++first;
  std::size_t from = first;
  for (std::size_t i = first; i < free_.size(); ++i) {
    if (free_[i] < nodes)
      from = i + 1;
    else if (i + 1 - from >= slots)
      return from;
  }
  return from < free_.size() ? std::optional(from) : std::nullopt;
}

void Timeline::take(std::size_t from, std::size_t slots, std::int32_t nodes) {
  const std::size_t until = std::min(free_.size(), from + slots);
  for (std::size_t i = from; i < until; ++i) free_[i] -= nodes;
}

namespace {

/// The next moment of the clock that passes are run by.
Seconds tick_after(Seconds now, Seconds interval) {
  const Seconds every = std::max<Seconds>(interval, 1);
  return (now / every + 1) * every;
}

std::size_t slots_in(const ClusterModel& model) {
  return static_cast<std::size_t>(std::max<Seconds>(1, model.window / model.resolution));
}

}  // namespace

std::int32_t ClusterModel::most_nodes() const {
  std::int32_t most = 1;
  for (const auto& [from, count] : nodes) most = std::max(most, count);
  return most;
}

Cluster::Cluster(const ClusterModel& model, Seconds now)
    : model_(model),
      begin_(now),
      now_(now),
      free_(model.nodes.front().second),
      timeline_(slots_in(model), model.most_nodes()) {
  change_nodes_due();
}

/// All grow older at the same pace: which is before which stays as it is.
double Cluster::rank_of(const Job& job) const {
  const double age = -static_cast<double>(job.submitted) / static_cast<double>(model_.full_age);
  const double size = static_cast<double>(job.nodes) / model_.most_nodes();
  return model_.age_weight * age + model_.size_weight * size + job.priority;
}

void Cluster::count_user(std::int32_t user, std::int32_t more) {
  if (model_.most_of_user == 0 || user < 0) return;
  const auto place = static_cast<std::size_t>(user);
  if (place >= of_user_.size()) of_user_.resize(place + 1, 0);
  of_user_[place] += more;
}

bool Cluster::may_run(const Job& job) const {
  if (model_.most_of_user == 0 || job.user < 0) return true;
  const auto place = static_cast<std::size_t>(job.user);
  return place >= of_user_.size() || of_user_[place] < model_.most_of_user;
}

Cluster::Id Cluster::enter(const Job& job) {
  const Id id = static_cast<Id>(jobs_.size());
  Entry& entry = jobs_.emplace_back(Entry{job});
  entry.job.nodes = std::clamp(job.nodes, 1, model_.most_nodes());
  entry.rank = rank_of(entry.job);
  return id;
}

Cluster::Id Cluster::submit(const Job& job) {
  const Id id = enter(job);
  if (job.after && jobs_[*job.after].ended == kNever) {
    blocked_.emplace(*job.after, id);
    return id;
  }
  queue(id);
  main_pass();
  return id;
}

void Cluster::queue_all(const std::vector<Job>& jobs) {
  for (const Job& job : jobs) {
    const Id id = enter(job);
    if (!waiting_.empty()) jobs_[id].rank = std::min(jobs_[id].rank, jobs_[waiting_.back()].rank);
    waiting_.push_back(id);
  }
  note_change();
  main_pass();
}

void Cluster::queue(Id id) {
  const auto before = [&](Id one, Id other) {
    return jobs_[one].rank != jobs_[other].rank ? jobs_[one].rank > jobs_[other].rank : one < other;
  };
  waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), id, before), id);
  note_change();
}

Cluster::Id Cluster::run_since(const Job& job, Seconds started) {
  const Id id = static_cast<Id>(jobs_.size());
  jobs_.push_back({job});
  start(id, started);
  return id;
}

void Cluster::start(Id id, Seconds when) {
  Entry& entry = jobs_[id];
  entry.started = when;
  free_ -= entry.job.nodes;
  count_user(entry.job.user, 1);
  running_.push_back(id);
  const Seconds runs = std::max<Seconds>(0, std::min(entry.job.runs, entry.job.limit));
  ends_.emplace(std::max(now_, when + runs), id);
}

void Cluster::end_due() {
  while (!ends_.empty() && ends_.begin()->first <= now_) {
    const Id id = ends_.begin()->second;
    Entry& entry = jobs_[id];
    entry.ended = ends_.begin()->first;
    free_ += entry.job.nodes;
    count_user(entry.job.user, -1);
    running_.erase(std::find(running_.begin(), running_.end(), id));
    ends_.erase(ends_.begin());
    const auto [first, last] = blocked_.equal_range(id);
    for (auto at = first; at != last; ++at) queue(at->second);
    blocked_.erase(first, last);
    note_change();
  }
}

/// Fewer nodes than are in use: what runs goes on, and nothing starts before enough has ended.
void Cluster::change_nodes_due() {
  while (node_change_ < model_.nodes.size() && model_.nodes[node_change_].first <= now_) {
    free_ += model_.nodes[node_change_].second - model_.nodes[node_change_ - 1].second;
    ++node_change_;
    note_change();
  }
}

void Cluster::note_change() {
  if (!has_changed_) {
    const auto coarse = static_cast<Seconds>(model_.coarsens * static_cast<double>(now_ - begin_));
    next_backfill_ = tick_after(now_, std::max(model_.backfill_interval, coarse));
  }
  has_changed_ = true;
}

std::optional<Seconds> Cluster::next_event() const {
  std::optional<Seconds> next;
  const auto sooner = [&](Seconds when) { next = next ? std::min(*next, when) : when; };
  if (!ends_.empty()) sooner(ends_.begin()->first);
  if (waiting_.empty()) return next;
  if (node_change_ < model_.nodes.size()) sooner(model_.nodes[node_change_].first);
  if (has_changed_ && free_ > 0 && model_.backfill != ClusterModel::Backfill::None)
    sooner(next_backfill_);
  return next;
}

void Cluster::advance(Seconds until) {
  for (auto next = next_event(); next && *next <= until; next = next_event()) {
    now_ = std::max(now_, *next);
    const std::int32_t free_before = free_;
    end_due();
    change_nodes_due();
    if (free_ > free_before) main_pass();
    if (has_changed_ && now_ >= next_backfill_) backfill_pass();
  }
  now_ = std::max(now_, until);
  change_nodes_due();
}

std::optional<Seconds> Cluster::play_until_started(Id id, Seconds until) {
  while (jobs_[id].started == kNever) {
    const auto next = next_event();
    if (!next || *next > until) return std::nullopt;
    advance(*next);
  }
  return jobs_[id].started;
}

/// Of the first so many.
void Cluster::drop_started(std::size_t looked_at) {
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(looked_at);
  const auto kept =
      std::remove_if(waiting_.begin(), end, [&](Id id) { return jobs_[id].started != kNever; });
  waiting_.erase(kept, end);
}

void Cluster::main_pass() {
  std::size_t looked_at = 0, last_started = 0;
  for (const Id id : waiting_) {
    ++looked_at;
    if (free_ <= 0) break;
    const Job& job = jobs_[id].job;
    if (!may_run(job)) continue;
    if (job.nodes > free_) break;
    start(id, now_);
    last_started = looked_at;
  }
  drop_started(last_started);
}

void Cluster::backfill_pass() {
  has_changed_ = false;
  if (waiting_.empty() || free_ <= 0) return;
  if (model_.backfill == ClusterModel::Backfill::Easy) easy_pass();
  if (model_.backfill == ClusterModel::Backfill::Conservative) conservative_pass();
}

/// By their limits: nobody knows when they really end.
std::vector<std::pair<Seconds, std::int32_t>> Cluster::ends_by_limit() const {
  std::vector<std::pair<Seconds, std::int32_t>> ends;
  ends.reserve(running_.size());
  for (const Id id : running_) {
    const Entry& entry = jobs_[id];
    ends.emplace_back(std::max(now_ + 1, entry.started + entry.job.limit), entry.job.nodes);
  }
  return ends;
}

std::size_t Cluster::slots_of(Seconds length) const {
  return static_cast<std::size_t>((std::max<Seconds>(length, 1) + model_.resolution - 1) /
                                  model_.resolution);
}

/// When so many nodes will be free, as limits say, and how many beside them then.
Cluster::Shadow Cluster::shadow_of(std::int32_t nodes) const {
  auto ends = ends_by_limit();
  std::sort(ends.begin(), ends.end());
  std::int32_t free = free_;
  for (const auto& [when, more] : ends) {
    free += more;
    if (free >= nodes) return {when, free - nodes};
  }
  return {now_ + model_.window, 0};
}

void Cluster::easy_pass() {
  std::optional<Shadow> shadow;  // of the first that does not fit now
  std::size_t looked_at = 0, last_started = 0, tested = 0;
  for (const Id id : waiting_) {
    ++looked_at;
    const Job& job = jobs_[id].job;
    if (free_ <= 0 || ++tested > model_.most_tested) break;
    if (!may_run(job)) continue;
    if (job.nodes > free_) {
      if (!shadow) shadow = shadow_of(job.nodes);
      continue;
    }
    const bool ends_before = shadow && now_ + job.limit <= shadow->when;
    if (shadow && !ends_before) {
      if (job.nodes > shadow->beside) continue;
      shadow->beside -= job.nodes;
    }
    start(id, now_);
    last_started = looked_at;
  }
  drop_started(last_started);
}

void Cluster::conservative_pass() {
  timeline_.reset(free_);
  for (const auto& [when, nodes] : ends_by_limit()) timeline_.frees(slots_of(when - now_), nodes);
  timeline_.settle();
  std::size_t tested = 0;
  std::size_t looked_at = 0, last_started = 0;
  for (const Id id : waiting_) {
    ++looked_at;
    if (timeline_.free_at(0) <= 0) break;
    const Job& job = jobs_[id].job;
    if (!may_run(job)) continue;
    if (++tested > model_.most_tested) break;
    const std::size_t length = slots_of(job.limit);
    const auto from = timeline_.earliest(job.nodes, length);
    if (!from) continue;
    timeline_.take(*from, length, job.nodes);
    if (*from != 0) continue;
    start(id, now_);
    last_started = looked_at;
  }
  drop_started(last_started);
}

std::optional<Seconds> Cluster::started(Id id) const {
  const Seconds when = jobs_[id].started;
  return when == kNever ? std::nullopt : std::optional(when);
}

std::optional<Seconds> Cluster::ended(Id id) const {
  const Seconds when = jobs_[id].ended;
  return when == kNever ? std::nullopt : std::optional(when);
}

}  // namespace hpcbatch::foresight
