// A cluster of alike nodes and the queue before it, played event by event: who starts when.
//
// What is played of Slurm (slurm.conf(5), sched_config): a main pass at every submit and end, which
// starts jobs in the order of their priorities until the first that does not fit; a backfill pass
// now and then, conservative (each job that is looked at gets a reservation) or EASY (the first
// alone does); priorities by age and size; a bound for the running jobs of a user; nodes that come
// and go.  A job holds its nodes for as long as it really runs, and is planned with its limit.
#pragma once

#include "foresight/wait_history.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace hpcbatch::foresight {

// Free nodes over the time to come, in slots of one length.

/// Nodes are only ever taken between two resets, so where so many are free for the first time is
/// never before where it was.
class Timeline {
 public:
  Timeline(std::size_t slots, std::int32_t most_nodes);

  void reset(std::int32_t free_now);
  /// More nodes are free from that slot on; said in any order, before the first `settle`.
  void frees(std::size_t slot, std::int32_t nodes);
  void settle();

  /// The first slot from which so many are free for so long; what is beyond the last slot counts
  /// as free.  Nothing where not even the last slot has them.
  std::optional<std::size_t> earliest(std::int32_t nodes, std::size_t slots);
  void take(std::size_t from, std::size_t slots, std::int32_t nodes);

  std::size_t size() const { return free_.size(); }
  std::int32_t free_at(std::size_t slot) const { return free_[slot]; }

 private:
  std::vector<std::int32_t> free_;
  std::vector<std::uint32_t> not_before_;  ///< by nodes
};

struct ClusterModel {
  enum class Backfill : std::uint8_t { None, Easy, Conservative };
  /// From these moments on, the first from the beginning.
  std::vector<std::pair<Seconds, std::int32_t>> nodes{{0, 1}};
  Backfill backfill{Backfill::Conservative};
  Seconds backfill_interval{30};
  /// The farther from the beginning the less often, by that part of the time since then: what is far
  /// ahead need not be known to the minute.
  double coarsens{0};
  Seconds resolution{kMinute};   ///< of the plan
  Seconds window{kDay};          ///< of the plan: what would start later gets no reservation
  std::size_t most_tested{500};  ///< jobs that a backfill pass looks at
  /// Priority: by age, all of it after `full_age`, and by the share of the nodes.
  double age_weight{1000}, size_weight{0};
  Seconds full_age{7 * kDay};
  std::int32_t most_of_user{0};  ///< running jobs; 0: no bound

  std::int32_t most_nodes() const;
};

class Cluster {
 public:
  using Id = std::uint32_t;  ///< from 0, in the order of submits
  explicit Cluster(const ClusterModel& model, Seconds now = 0);

  /// At this moment.
  Id submit(const Job& job);
  /// Those that wait already, in that order, before anything of them starts; of a new one only.
  void queue_all(const std::vector<Job>& jobs);
  /// One that has run since then.
  Id run_since(const Job& job, Seconds started);
  /// Plays on, up to and with that moment.
  void advance(Seconds until);
  /// The next moment at which something may start or end; nothing where all has ended.
  std::optional<Seconds> next_event() const;
  /// Plays on until that job has started, or until that moment; nothing where it has not by then.
  std::optional<Seconds> play_until_started(Id id, Seconds until);

  Seconds now() const { return now_; }
  std::optional<Seconds> started(Id id) const;
  std::optional<Seconds> ended(Id id) const;
  const Job& job(Id id) const { return jobs_[id].job; }
  std::int32_t free() const { return free_; }
  std::size_t count() const { return jobs_.size(); }
  /// In the order of their priorities.
  const std::vector<Id>& waiting() const { return waiting_; }
  const std::vector<Id>& running() const { return running_; }

 private:
  static constexpr Seconds kNever = -1;
  struct Entry {
    Job job;
    double rank{0};
    Seconds started{kNever}, ended{kNever};
  };
  struct Shadow {
    Seconds when;
    std::int32_t beside;
  };
  Shadow shadow_of(std::int32_t nodes) const;
  double rank_of(const Job& job) const;
  bool may_run(const Job& job) const;
  Id enter(const Job& job);
  void queue(Id id);
  void start(Id id, Seconds when);
  void drop_started(std::size_t looked_at);
  void note_change();
  void end_due();
  void change_nodes_due();
  void main_pass();
  void backfill_pass();
  void easy_pass();
  void conservative_pass();
  void count_user(std::int32_t user, std::int32_t more);
  std::vector<std::pair<Seconds, std::int32_t>> ends_by_limit() const;
  std::size_t slots_of(Seconds length) const;

  ClusterModel model_;
  Seconds begin_;
  Seconds now_;
  std::size_t node_change_{1};  ///< the next of `model_.nodes`
  std::int32_t free_;
  std::vector<Entry> jobs_;
  std::vector<Id> waiting_;
  std::multimap<Id, Id> blocked_;  ///< by what they are to come after
  std::vector<Id> running_;
  std::set<std::pair<Seconds, Id>> ends_;
  std::vector<std::int32_t> of_user_;
  bool has_changed_{false};   ///< since the last backfill pass
  Seconds next_backfill_{0};  ///< where something has
  Timeline timeline_;
};

}  // namespace hpcbatch::foresight
