#include "foresight/watch/queue_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

namespace hpcbatch::foresight {
namespace {

// Before so many have ended, what is known of how long jobs run is that they keep their limits.
constexpr std::size_t kFewestEnds = 20;
// Cpus that are busy and of which no batch job is shown: more than this part of them is a queue that
// is hidden from us.
constexpr double kMostHidden = 0.25;
// Between two looks of which one follows the other.
constexpr Seconds kLongestGap = 4 * kMinute;
// What memory is counted by.
constexpr double kGigabyte = 1024.0 * 1024 * 1024, kMemoryUnit = kGigabyte / 16;
// Names and users are remembered for as long as they are few enough.
constexpr std::size_t kMostRemembered = 100'000;

std::int32_t whole(double cpus) {
  return std::max(1, static_cast<std::int32_t>(std::lround(std::ceil(cpus))));
}

/// Names that differ in digits alone are one.
std::string without_digits(const std::string& name) {
  std::string rest;
  for (const char c : name)
    if (c < '0' || c > '9') rest += c;
  return rest;
}

template <class Number>
Number number_of(std::map<std::string, Number>& known, const std::string& text) {
  return known.try_emplace(text, static_cast<Number>(known.size())).first->second;
}

}  // namespace

Job QueueWatch::job_of(const WatchedJob& seen) const {
  const auto user = users_.find(seen.user);
  const auto name = names_.find(without_digits(seen.name));
  return {.limit = std::max<Seconds>(seen.limit.count(), 1),
          .nodes = whole(seen.cpus),
          .user = seen.user.empty() || user == users_.end() ? -1 : user->second,
          .name = name == names_.end() ? 0 : name->second};
}

void QueueWatch::learn(const Ended& ended) {
  times_.learn({.limit = ended.limit,
                .runs = ended.ran,
                .nodes = ended.cpus,
                .user = ended.user.empty() ? -1 : number_of(users_, ended.user),
                .name = number_of(names_, ended.name)});
  ++learned_;
}

void QueueWatch::see(const WatchedQueue& queue, Seconds now, const WatchedRoom& room) {
  if (users_.size() > kMostRemembered || names_.size() > kMostRemembered) {
    users_.clear();
    names_.clear();
  }
  for (const WatchedJob& seen : queue.jobs) {
    if (!seen.user.empty()) number_of(users_, seen.user);
    number_of(names_, without_digits(seen.name));
  }
  std::map<std::string, Ran> run;
  for (const WatchedJob& seen : queue.jobs) {
    if (!seen.runs) continue;
    run[seen.number] = {{.user = seen.user,
                         .name = without_digits(seen.name),
                         .limit = std::max<Seconds>(seen.limit.count(), 1),
                         .cpus = whole(seen.cpus)},
                        now - seen.elapsed.count()};
  }
  newly_ended_.clear();
  for (auto& [number, job] : ran_) {
    // Of one that ended long ago nobody knows when.
    if (run.contains(number) || now - now_ > kLongestGap) continue;
    // It ended at some moment between the two looks.
    const Seconds end = std::midpoint(now_, now);
    job.job.ran = std::clamp<Seconds>(end - job.since, 1, job.job.limit);
    newly_ended_.push_back(job.job);
    learn(job.job);
  }
  ran_ = std::move(run);
  queue_ = queue;
  room_ = room;
  now_ = now;
}

const RoomOfJob& QueueWatch::room_of(const WatchedJob& seen) const {
  static const RoomOfJob kNothing;
  const auto at = room_.jobs.find(seen.number);
  return at == room_.jobs.end() ? kNothing : at->second;
}

/// What batch jobs share: each is played by itself, and the latest start counts.
struct QueueWatch::Thing {
  std::string name;
  double wanted{0};
  double unit{1};  ///< so much of it is a node of the play
  bool is_cpus{false};
  std::function<double(const WatchedJob&)> of_job;
  std::function<double(const RoomOfNode&)> of_node, busy_of;

  std::int32_t units(double amount) const { return whole(std::min(amount / unit, kMostUnits)); }
  std::int32_t whole_units(double amount) const {
    return static_cast<std::int32_t>(std::floor(std::min(amount / unit, kMostUnits) + 1e-6));
  }
  static constexpr double kMostUnits = 1e9;
};

std::vector<QueueWatch::Thing> QueueWatch::things_of(const Wanted& wanted) const {
  std::vector<Thing> things;
  things.push_back({.name = "cpus",
                    .wanted = wanted.cpus,
                    .is_cpus = true,
                    .of_job = [](const WatchedJob& job) { return job.cpus; },
                    .of_node = [](const RoomOfNode& node) { return node.cpus; },
                    .busy_of = [](const RoomOfNode& node) { return node.busy_cpus; }});
  const bool counts_memory = std::any_of(room_.nodes.begin(), room_.nodes.end(),
                                         [](const RoomOfNode& node) { return node.memory > 0; });
  if (wanted.memory > 0 && counts_memory) {
    things.push_back({.name = "GB of memory",
                      .wanted = wanted.memory,
                      .unit = kMemoryUnit,
                      .of_job = [this](const WatchedJob& job) { return room_of(job).memory; },
                      .of_node = [](const RoomOfNode& node) { return node.memory; },
                      .busy_of = [](const RoomOfNode& node) { return node.busy_memory; }});
  }
  for (const auto& [kind, count] : wanted.gpus) {
    things.push_back(
        {.name = "GPUs" + (kind.empty() ? "" : " of kind " + kind),
         .wanted = count,
         .of_job = [this, kind = kind](
                       const WatchedJob& job) { return gpus_of_kind(room_of(job).gpus, kind); },
         .of_node = [kind = kind](const RoomOfNode& node) { return gpus_of_kind(node.gpus, kind); },
         .busy_of =
             [kind = kind](const RoomOfNode& node) { return gpus_of_kind(node.busy_gpus, kind); }});
  }
  return things;
}

/// A partition as it is played.
struct QueueWatch::Part {
  QueueView view;
  std::int32_t most{0};            ///< of its nodes, now or later
  std::vector<std::string> names;  ///< of what waits, in its order; empty where it may not run here
  double busy{0};
  double hidden{0};  ///< of that, nobody can say by what
};

void QueueWatch::put_nodes(Part& part, const WatchedPartition& partition, const NodeRoom& room,
                           const Thing& thing) const {
  if (!room.knows_nodes()) {
    part.view.nodes = part.most = whole(partition.cpus);
    part.busy = partition.busy_cpus;
    return;
  }
  for (const auto& [when, amount] : room.over_time(thing.of_node)) {
    const std::int32_t units = thing.whole_units(amount);
    part.most = std::max(part.most, units);
    if (when == now_)
      part.view.nodes = units;
    else
      part.view.later.emplace_back(when, units);
  }
  part.busy = room.over_time(thing.busy_of).front().second;
}

QueueWatch::Part QueueWatch::part_of(const WatchedPartition& partition, const NodeRoom& room,
                                     const Thing& thing) const {
  const std::set<std::string> all(partition.nodes.begin(), partition.nodes.end());
  const std::set<std::string> nodes = room.knows_nodes() ? room.free_of_reservations() : all;
  // Partitions on the same nodes compete for them.
  std::set<std::string> beside;
  for (const WatchedPartition& other : queue_.partitions) {
    if (std::any_of(other.nodes.begin(), other.nodes.end(),
                    [&](const std::string& node) { return all.contains(node); }))
      beside.insert(other.name);
  }
  Part part;
  part.view = {.now = now_, .nodes = 0, .later = {}, .running = {}, .waiting = {}};
  put_nodes(part, partition, room, thing);
  double shown = 0;
  for (const WatchedJob& seen : queue_.jobs) {
    const double amount = thing.of_job(seen);
    if (amount <= 0 && !thing.is_cpus) continue;
    Job job = job_of(seen);
    job.nodes = thing.units(amount);
    if (seen.runs) {
      const auto here = std::count_if(seen.nodes.begin(), seen.nodes.end(),
                                      [&](const auto& node) { return nodes.contains(node); });
      if (here == 0) continue;
      const double amount_here =
          amount * static_cast<double>(here) / static_cast<double>(seen.nodes.size());
      shown += amount_here;
      job.nodes = thing.units(amount_here);
      part.view.running.push_back({job, now_ - seen.elapsed.count()});
    } else if (seen.may_start && job.nodes <= part.most &&
               std::any_of(seen.partitions.begin(), seen.partitions.end(),
                           [&](const auto& name) { return beside.contains(name); })) {
      part.view.waiting.push_back(job);
      // In another partition it may start earlier.
      const bool is_here = std::find(seen.partitions.begin(), seen.partitions.end(),
                                     partition.name) != seen.partitions.end();
      part.names.push_back(is_here ? seen.name : "");
    }
  }
  part.hidden = std::max(0.0, part.busy - shown);
  return part;
}

namespace {

/// What has to wait for both starts with the later; both in order.
void take_later(std::vector<Seconds>& waits, const std::vector<Seconds>& other) {
  if (waits.empty()) waits = other;
  for (std::size_t i = 0; i < std::min(waits.size(), other.size()); ++i)
    waits[i] = std::max(waits[i], other[i]);
}

}  // namespace

void QueueWatch::play(Foreseen& foreseen, Part part, const Thing& thing, const Wanted& wanted,
                      const std::set<std::string>& ours) const {
  const Job next{.limit = wanted.limit, .nodes = thing.units(thing.wanted)};
  // What nobody knows of stays for as long as anybody can look.
  if (const std::int32_t hidden = thing.whole_units(part.hidden); hidden > 0)
    part.view.nodes = std::max(next.nodes, part.view.nodes - hidden);
  std::vector<std::size_t> watched;
  for (std::size_t place = 0; place < part.names.size(); ++place)
    if (ours.contains(part.names[place])) watched.push_back(place);
  const RunTimes* times = foreseen.by_limits ? nullptr : &times_;
  DrawnStarts drawn = draw_starts(part.view, ClusterModel{}, times, next, watched, Draws{});
  const auto waits = [&](std::vector<Seconds> starts) {
    for (Seconds& start : starts) start -= now_;
    return starts;
  };
  take_later(foreseen.next, waits(std::move(drawn.next)));
  for (std::size_t i = 0; i < watched.size(); ++i)
    take_later(foreseen.queued[part.names[watched[i]]], waits(std::move(drawn.waiting[i])));
}

/// Room that is free here and there is none for one batch job that wants it in one place.
void QueueWatch::fit_nodes(Foreseen& foreseen, const NodeRoom& room, const Wanted& wanted) const {
  const double nodes = std::max(1U, wanted.nodes);
  WantedRoom each{.nodes = std::max(1U, wanted.nodes),
                  .cpus = wanted.cpus / nodes,
                  .memory = wanted.memory / nodes,
                  .gpus = wanted.gpus};
  for (auto& [kind, count] : each.gpus) count /= nodes;
  const Draws draws;
  const RunTimes* times = foreseen.by_limits ? nullptr : &times_;
  // Ours that wait for the same take their room one after another, then the next.
  std::vector<std::string> before;
  for (const WatchedJob& seen : queue_.jobs)
    if (foreseen.queued.contains(seen.name) && seen.cpus == wanted.cpus)
      before.push_back(seen.name);
  std::vector<std::vector<Seconds>> waits(before.size() + 1);
  for (std::size_t i = 0; i < foreseen.next.size(); ++i) {
    RunTimeDraw run_time(times, draws.alike, draws.seed + static_cast<std::uint32_t>(i) * 7919U);
    std::vector<RunningRoom> running;
    for (const WatchedJob& seen : queue_.jobs) {
      if (!seen.runs || seen.nodes.empty()) continue;
      const RoomOfJob& its = room_of(seen);
      const Seconds elapsed = std::max<Seconds>(seen.elapsed.count(), 1);
      running.push_back({.nodes = seen.nodes,
                         .cpus = seen.cpus,
                         .memory = its.memory,
                         .gpus = its.gpus,
                         .ends = now_ - seen.elapsed.count() + run_time(job_of(seen), elapsed)});
    }
    const auto starts = room.fits(each, wanted.limit, running, waits.size());
    for (std::size_t k = 0; k < waits.size(); ++k)
      waits[k].push_back(k < starts.size() ? std::min(starts[k] - now_, draws.horizon)
                                           : draws.horizon);
  }
  for (auto& each_of : waits) std::sort(each_of.begin(), each_of.end());
  for (std::size_t k = 0; k < before.size(); ++k) take_later(foreseen.queued[before[k]], waits[k]);
  take_later(foreseen.next, waits.back());
}

std::string QueueWatch::why_closed(const WatchedPartition& partition, const NodeRoom& room,
                                   const std::vector<Thing>& things) const {
  const auto closed = room_.closed_partitions.find(partition.name);
  if (closed != room_.closed_partitions.end())
    return fmt::format("partition {} is {}: it starts nothing now", partition.name, closed->second);
  if (room_.nodes.empty()) return "";
  if (!room.knows_nodes())
    return fmt::format("no node of partition {} takes batch jobs now", partition.name);
  for (const Thing& thing : things) {
    const auto steps = room.over_time(thing.of_node);
    if (steps.back().second + 1e-6 >= thing.wanted) continue;
    const double shown = thing.unit > 1 ? kGigabyte : 1;
    return fmt::format("partition {} has {:.0f} {} that are up, and {:.0f} are asked for",
                       partition.name, std::floor(steps.back().second / shown), thing.name,
                       std::ceil(thing.wanted / shown));
  }
  return "";
}

Foreseen QueueWatch::foresee(const Wanted& wanted, const std::set<std::string>& ours) const {
  Foreseen foreseen;
  const auto partition = std::find_if(
      queue_.partitions.begin(), queue_.partitions.end(), [&](const WatchedPartition& one) {
        return wanted.partition.empty() ? one.is_default : one.name == wanted.partition;
      });
  if (partition == queue_.partitions.end()) {
    foreseen.blind = wanted.partition.empty()
                         ? "the batch system names no default partition"
                         : fmt::format("the batch system shows no partition {}", wanted.partition);
    return foreseen;
  }
  const NodeRoom room(room_, partition->nodes, now_);
  const bool sees_gpus = std::any_of(room_.nodes.begin(), room_.nodes.end(),
                                     [](const RoomOfNode& node) { return !node.gpus.empty(); });
  if (!wanted.gpus.empty() && !sees_gpus) {
    foreseen.blind = "who has GPUs is not seen in the queue";
    return foreseen;
  }
  const std::vector<Thing> things = things_of(wanted);
  foreseen.blind = why_closed(*partition, room, things);
  foreseen.is_closed = !foreseen.blind.empty();
  if (foreseen.is_closed) return foreseen;
  foreseen.by_limits = learned_ < kFewestEnds;
  for (const Thing& thing : things) {
    Part part = part_of(*partition, room, thing);
    if (thing.is_cpus && part.hidden > kMostHidden * part.busy) {
      foreseen.blind = fmt::format(
          "the batch system hides others' jobs: {:.0f} of {:.0f} busy cpus of partition {}"
          " are nobody's that it shows",
          part.hidden, part.busy, partition->name);
      return foreseen;
    }
    if (thing.units(thing.wanted) > part.most) {
      foreseen.blind =
          fmt::format("partition {} has {} {} that are up, and {} are asked for", partition->name,
                      part.most, thing.name, thing.units(thing.wanted));
      return foreseen;
    }
    play(foreseen, std::move(part), thing, wanted, ours);
  }
  if (room.knows_nodes()) fit_nodes(foreseen, room, wanted);
  return foreseen;
}

}  // namespace hpcbatch::foresight
