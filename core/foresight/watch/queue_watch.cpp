#include "foresight/watch/queue_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

void QueueWatch::see(const WatchedQueue& queue, Seconds now) {
  if (users_.size() > kMostRemembered || names_.size() > kMostRemembered) {
    users_.clear();
    names_.clear();
  }
  for (const WatchedJob& seen : queue.jobs) {
    if (!seen.user.empty()) number_of(users_, seen.user);
    number_of(names_, without_digits(seen.name));
  }
  std::map<std::string, std::pair<Job, Seconds>> run;
  for (const WatchedJob& seen : queue.jobs) {
    if (seen.runs) run[seen.number] = {job_of(seen), now - seen.elapsed.count()};
  }
  for (auto& [number, job] : ran_) {
    // Of one that ended long ago nobody knows when.
    if (run.contains(number) || now - now_ > kLongestGap) continue;
    // It ended at some moment between the two looks.
    const Seconds end = std::midpoint(now_, now);
    job.first.runs = std::clamp<Seconds>(end - job.second, 1, job.first.limit);
    times_.learn(job.first);
    ++learned_;
  }
  ran_ = std::move(run);
  queue_ = queue;
  now_ = now;
}

/// A partition as it is played.
struct QueueWatch::Part {
  QueueView view;
  std::vector<std::string> names;  ///< of what waits, in its order; empty where it may not run here
  double hidden{0};                ///< cpus that are busy, nobody can say with what
};

QueueWatch::Part QueueWatch::part_of(const WatchedPartition& partition) const {
  const std::set<std::string> nodes(partition.nodes.begin(), partition.nodes.end());
  // Partitions on the same nodes compete for them.
  std::set<std::string> beside;
  for (const WatchedPartition& other : queue_.partitions) {
    if (std::any_of(other.nodes.begin(), other.nodes.end(),
                    [&](const std::string& node) { return nodes.contains(node); }))
      beside.insert(other.name);
  }
  Part part;
  part.view = {.now = now_, .nodes = whole(partition.cpus), .running = {}, .waiting = {}};
  double shown = 0;
  for (const WatchedJob& seen : queue_.jobs) {
    Job job = job_of(seen);
    if (seen.runs) {
      const auto here = std::count_if(seen.nodes.begin(), seen.nodes.end(),
                                      [&](const auto& node) { return nodes.contains(node); });
      if (here == 0) continue;
      const double cpus =
          seen.cpus * static_cast<double>(here) / static_cast<double>(seen.nodes.size());
      shown += cpus;
      job.nodes = whole(cpus);
      part.view.running.push_back({job, now_ - seen.elapsed.count()});
    } else if (seen.may_start && job.nodes <= part.view.nodes &&
               std::any_of(seen.partitions.begin(), seen.partitions.end(),
                           [&](const auto& name) { return beside.contains(name); })) {
      part.view.waiting.push_back(job);
      // In another partition it may start earlier.
      const bool is_here = std::find(seen.partitions.begin(), seen.partitions.end(),
                                     partition.name) != seen.partitions.end();
      part.names.push_back(is_here ? seen.name : "");
    }
  }
  part.hidden = std::max(0.0, partition.busy_cpus - shown);
  return part;
}

Foreseen QueueWatch::foresee(const Wanted& wanted, const std::set<std::string>& ours) const {
  Foreseen foreseen;
  if (wanted.has_gpus) {
    foreseen.blind = "who has GPUs is not seen in the queue";
    return foreseen;
  }
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
  Part part = part_of(*partition);
  if (part.hidden > kMostHidden * partition->busy_cpus) {
    foreseen.blind = fmt::format(
        "the batch system hides others' jobs: {:.0f} of {:.0f} busy cpus of partition {}"
        " are nobody's that it shows",
        part.hidden, partition->busy_cpus, partition->name);
    return foreseen;
  }
  const Job next{.limit = wanted.limit, .nodes = whole(wanted.cpus)};
  if (next.nodes > part.view.nodes) {
    foreseen.blind = fmt::format("partition {} has {} cpus that are up, and {} are asked for",
                                 partition->name, part.view.nodes, next.nodes);
    return foreseen;
  }
  // What nobody knows of stays for as long as anybody can look.
  if (const auto hidden = static_cast<std::int32_t>(part.hidden); hidden > 0)
    part.view.nodes = std::max(next.nodes, part.view.nodes - hidden);
  std::vector<std::size_t> watched;
  for (std::size_t place = 0; place < part.names.size(); ++place)
    if (ours.contains(part.names[place])) watched.push_back(place);
  foreseen.by_limits = learned_ < kFewestEnds;
  const RunTimes* times = foreseen.by_limits ? nullptr : &times_;
  DrawnStarts drawn = draw_starts(part.view, ClusterModel{}, times, next, watched, Draws{});
  const auto waits = [&](std::vector<Seconds> starts) {
    for (Seconds& start : starts) start -= now_;
    return starts;
  };
  foreseen.next = waits(std::move(drawn.next));
  for (std::size_t i = 0; i < watched.size(); ++i)
    foreseen.queued[part.names[watched[i]]] = waits(std::move(drawn.waiting[i]));
  return foreseen;
}

}  // namespace hpcbatch::foresight
