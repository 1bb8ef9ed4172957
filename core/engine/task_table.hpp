// Every task that has not ended: where each stands, what it waits for, and how the end of one moves
// others.
//
// An index of an array is in exactly one place:
//   queue     could start now (ReadyQueue; several places where a pilot's end has cut some of its
//             tasks, or files were staged in to sites for some); parked there while as many of its
//             array run as may
//   standing  blocked, held, leased, ended well or not
#pragma once

#include "engine/state/ready_queue.hpp"
#include "engine/state/task_partition.hpp"
#include "engine/state/terms.hpp"
#include "model/action.hpp"
#include "model/event.hpp"
#include "model/ids.hpp"
#include "model/snapshot.hpp"
#include "model/task.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace hpcbatch {

// One array of which something has not ended.  There may be a million of them.

/// How an array waits for another; `known_ok` where that itself has left memory.
struct OpenDependency {
  Dependency on;
  std::optional<IndexSet> known_ok;
};

struct ArrayState {
  /// What arrays have that wait for others.
  struct Waits {
    std::vector<Dependency> after;                ///< as submitted
    std::multimap<ArrayId, OpenDependency> open;  ///< of these, by what is waited for
  };
  /// What few arrays have.
  struct Rare {
    IndexSet failed;   ///< where it is given up after so many
    IndexSet started;  ///< where others wait for that; what has ended may be missing
    Time last_start{};
    std::optional<Duration> unread_for;  ///< it was cancelled, because who waited for it is gone
    IndexSet cut;  ///< tasks that a pilot's end has cut, or that keep away from a node
    std::map<std::string, IndexSet> files_at;       ///< by site: tasks whose files were staged in
    std::map<std::string, IndexSet> files_staging;  ///< or are being staged in
    std::map<std::string, StagingTimes> staging_times;  ///< by site
    struct Pause {
      Time until{};
      std::uint32_t failures{0};
      std::string why;
    };
    std::map<std::string, Pause> pauses;  ///< by site: files could not be staged in there
    /// Of tasks that need more time than they first had, or whose files are somewhere.
    std::vector<ClassId> other_classes;
  };

  ArrayId id;
  std::shared_ptr<const Terms> terms;
  ClientId client{};
  std::uint32_t unspread{0};  ///< ends that what waits for it has not heard of
  TaskPartition tasks;
  std::unique_ptr<Waits> waits{};
  std::unique_ptr<Rare> rare{};

  /// Of tasks that no pilot's end has cut, and whose files were not staged in anywhere.
  QueuePlace place() const { return {terms->in_class, terms->priority, client, id}; }
  /// All its places in the queue; most arrays have one.
  std::vector<QueuePlace> places() const {
    std::vector<QueuePlace> all{place()};
    for (const ClassId other : other_classes()) all.push_back({other, terms->priority, client, id});
    return all;
  }
  const IndexSet& cut() const { return seldom().cut; }
  bool needs_files() const { return !terms->needs.staged_to.empty(); }
  const std::map<std::string, IndexSet>& files_at() const { return seldom().files_at; }
  const std::map<std::string, IndexSet>& files_staging() const { return seldom().files_staging; }
  const std::vector<ClassId>& other_classes() const { return seldom().other_classes; }
  const std::vector<Dependency>& after() const { return awaited().after; }
  const std::multimap<ArrayId, OpenDependency>& open() const { return awaited().open; }
  /// How many have failed and may; nothing where that is not too many.
  std::optional<std::string> why_given_up() const;
  Rare& make_rare() {
    if (!rare) rare = std::make_unique<Rare>();
    return *rare;
  }
  Waits& make_waits() {
    if (!waits) waits = std::make_unique<Waits>();
    return *waits;
  }

 private:
  const Waits& awaited() const {
    static const Waits kNothing;
    return waits ? *waits : kNothing;
  }
  const Rare& seldom() const {
    static const Rare kNothing;
    return rare ? *rare : kNothing;
  }
};

/// How arrays ended that have left memory, by id.
class EndedFacts {
 public:
  explicit EndedFacts(const std::vector<EndedArray>& ended) {
    for (const EndedArray& array : ended) by_id_.emplace(array.id, &array);
  }
  const EndedArray* find(ArrayId id) const {
    const auto at = by_id_.find(id);
    return at == by_id_.end() ? nullptr : at->second;
  }

 private:
  std::unordered_map<ArrayId, const EndedArray*> by_id_;
};

/// A task as it is handed to a pilot.
struct TakenTask {
  TaskId task;
  std::uint32_t attempt{1};
};

class TaskTable {
 public:
  /// Of needs that have grown, the largest that some shape gives; the second are what they were.
  using Bound = std::function<Needs(const Needs&, const Needs&)>;
  TaskTable(Actions& actions, ReadyQueue::FitsShapes fits_shapes, Bound bound)
      : actions_(actions),
        queue_(std::move(fits_shapes)),
        bound_(std::move(bound)),
        terms_(queue_) {}

  /// Leased tasks of the snapshot stay leased: their pilots have yet to say what became of them.
  /// `longest` is the most walltime that any shape can give such needs.
  void restore(const Snapshot& snapshot, const LiveArrays& live_arrays,
               const std::function<std::optional<Duration>(const Needs&)>& longest);
  /// Text of the refusal, or nothing: then all of it was accepted.
  /// Its arrays go on to the store without a copy; a refusal changes nothing.
  std::optional<std::string> submit(TasksSubmitted&& event, Time now);
  std::uint64_t hold(const Selection& tasks, bool hold);
  std::uint64_t revive(const RetryAsked& event, Time now);
  /// Ends what is not leased; returns the leased ones, whose pilots must be told.
  std::vector<TaskId> cancel(const Selection& tasks, const std::string& why, Time now,
                             std::uint64_t& changed);

  // Other terms for what waits (updating.cpp).
  /// Why nothing of it can have any; nothing: it can.
  std::optional<std::string> why_not_updated(ArrayId id) const;
  NewArray updated(ArrayId id, const TermsChange& change) const;
  /// How many tasks have them now.
  std::uint64_t update(ArrayId id, NewArray facts, const TermsChange& change,
                       const EndedFacts& ended);
  /// Why what stands in `facts.after` cannot be waited for by such indices.
  std::optional<std::string> why_not_after(const NewArray& facts, const IndexSet& indices,
                                           const EndedFacts& ended) const;
  void spread_all_ends() { spread_ends(); }

  // Moments (task_times.cpp).
  /// What it is told of from now on happens then; never goes back.
  void set_time(Time now) { now_ = now; }
  /// Lets go what may start by now, and ends what cannot end in time; returns what pilots have of
  /// the latter, whose end is to come now.
  std::vector<TaskId> on_time();
  /// Its deadline has come.
  bool is_late(TaskId task) const;
  std::optional<Time> next_moment() const;
  /// Of arrays whose start others wait for, or are about to.
  void note_started(ArrayId id, const IndexSet& indices, Time at);
  bool is_start_awaited(ArrayId id) const {
    return !start_awaited_.empty() && start_awaited_.contains(id);
  }
  bool waits_for_its_time(const ArrayState& array) const;

  /// What is queued at a place ends, because it can never run.
  void end_queued(const QueuePlace& place, const std::string& why, Time now);

  // Arrays of which too many fail (waiting_tasks.cpp).
  /// Those of which one too many has failed since the last call.
  std::vector<ArrayId> to_give_up() { return std::exchange(to_give_up_, {}); }

  TakenTask take(const QueuePlace& place);
  /// A lease came back unused.
  void give_back(TaskId task);
  /// One that streams its input is never tried again after this.
  void input_given(TaskId task) { fed_.insert(task); }
  /// A lease is over.  Returns true where the task is tried again.
  bool ended(const AttemptId& attempt, const PilotId& pilot, const std::string& node,
             Outcome outcome, const Ending& ending, std::optional<Duration> longest);

  // Files (task_files.cpp).  A task that waits stands in the class of the sites where its files
  // are.
  /// Arrays of which something waits that have files to be staged in.
  const std::set<ArrayId>& arrays_with_files() const { return with_files_; }
  void files_staging(ArrayId id, const std::string& site, const IndexSet& indices, Time now);
  /// How long the files of one that has ended at that site were on their way there; told once.
  Duration staged_in(TaskId task, const std::string& site);
  /// Of an array whose tasks share their files: what holds for others of it holds for these.
  void files_shared(ArrayId id, const std::string& site, const IndexSet& indices);
  /// What became of them; with a failure for good those that still wait end.  Returns whether files
  /// of any array are still coming to that site.
  bool files_staged(const StagedIn& event, Time now);

  /// TellEnded for each array of which something has ended since the last call, behind what was
  /// saved of that.
  void tell_ended();

  /// Of the arrays from `first` to `last` those that are live: who waited for them has gone.
  std::vector<ArrayId> mark_unread(ArrayId first, ArrayId last, Duration lease);

  /// What the arrays that are there need, each kind once.
  std::vector<const Needs*> all_needs() const;
  /// Tasks whose commands submitted arrays of which something has not ended.
  std::set<TaskId> outer_tasks() const;
  const ArrayState* find(ArrayId id) const;
  const TaskHistory* history(TaskId task) const;
  /// What was guessed of its needs has been too little.
  bool guess_failed(TaskId task) const {
    const TaskHistory* past = history(task);
    return past && past->guess_failed;
  }
  /// Arrays of which something waits for that one; null: none.
  const std::vector<ArrayId>* dependants(ArrayId id) const {
    const auto at = dependants_.find(id);
    return at == dependants_.end() ? nullptr : &at->second;
  }
  /// The one that most pilots had that died without a reason, where that were at least two.
  std::optional<TaskId> prime_suspect() const;
  ReadyQueue& queue() { return queue_; }
  const ReadyQueue& queue() const { return queue_; }
  const std::map<ArrayId, ArrayState>& arrays() const { return arrays_; }
  /// Those that run only so many of their tasks at once.
  const std::set<ArrayId>& bounded() const { return bounded_; }
  ClassId class_of_task(TaskId task) const;
  /// What a retry has more of than its array asks for; nothing where it has no more.
  std::optional<Needs> grown_needs(TaskId task) const;
  /// Of arrays of which something has not ended: all tasks, and those at each place.
  struct Totals {
    std::uint64_t all{0};
    std::array<std::uint64_t, TaskPartition::kPlaces> in{};
    std::uint64_t at(TaskPartition::Place place) const {
      return in[static_cast<std::size_t>(place)];
    }
    std::uint64_t& at(TaskPartition::Place place) { return in[static_cast<std::size_t>(place)]; }
    friend bool operator==(const Totals&, const Totals&) = default;
  };
  const Totals& totals() const { return totals_; }
  /// Every index in exactly one place; for tests.
  void check_invariants() const;

 private:
  ArrayState& get(ArrayId id);
  ArrayState& make(ArrayId id, ClientId client, const NewArray& facts, const IndexSet& all);
  std::optional<std::string> refusal_of(const TasksSubmitted& event, const EndedFacts& ended) const;
  std::optional<std::string> why_not_after(const Dependency& on, const IndexSet& indices,
                                           const EndedFacts& ended) const;
  /// `there`: the indices of what is called so.
  static std::optional<std::string> why_not_after(const Dependency& on, const IndexSet& indices,
                                                  const std::string& name, const IndexSet& there);
  /// Why tasks that ask for numbers cannot have any.
  std::optional<std::string> why_no_numbers(const TasksSubmitted& event) const;
  void place_new(ArrayState& array, const IndexSet& indices, bool held, const EndedFacts& ended,
                 Time now);
  void remember(const SaveFailedAttempt& failed);
  void put(ArrayState& array, TaskPartition::Place place, const IndexSet& indices);
  void put(ArrayState& array, TaskPartition::Place place, std::uint32_t index) {
    put(array, place, IndexRange{index, index});
  }
  void take_out(ArrayState& array, TaskPartition::Place place, const IndexSet& indices);
  void take_out(ArrayState& array, TaskPartition::Place place, std::uint32_t index) {
    take_out(array, place, IndexRange{index, index});
  }
  void recreate(const RevivedArray& revived);
  void attach(ArrayState& array, const EndedFacts& ended, Time now);
  /// What was to start has, and when the last of it did.
  struct Begun {
    Dependency on;
    Time at{};
  };
  /// What dependencies of an array came to.
  struct Verdicts {
    std::vector<Begun> begun;
    bool any_met{false};
    std::string never;  ///< why one of them can never be met; empty: none is so
    IndexSet doomed;    ///< can never start because of it
  };
  void attach_to_ended(ArrayState& array, const Dependency& on, const EndedFacts& ended,
                       Verdicts& verdicts);
  /// What it means to have been met, or never to be; `begun`: when the last of its tasks has started.
  static void judge_wait(const Dependency& on, bool is_met, Time begun, Verdicts& verdicts);
  void act_on(ArrayState& array, Verdicts verdicts, Time now);
  void note_begun(ArrayState& array, const std::vector<Begun>& begun);
  void end_late(ArrayState& array, std::vector<TaskId>& late);
  void wait_for_singletons(NewArray& array) const;
  static Time latest_start(const ArrayState& array);
  void watch_deadline(const ArrayState& array);
  /// As it is to be run, with what it waits for and without its indices.
  static NewArray facts_of(const ArrayState& array);
  /// New terms, and places in the queue by them; what runs keeps what it was given.
  void change_terms(ArrayState& array, const NewArray& facts);
  IndexSet unblocked(const ArrayState& array, const IndexSet& indices) const;
  void make_ready(ArrayState& array, const IndexSet& indices);
  static bool at_its_limit(const ArrayState& array);
  void park_or_unpark(ArrayState& array);
  IndexSet take_unleased(ArrayState& array, const IndexSet& indices);
  void forget_histories(ArrayId id, const IndexSet& indices);
  void end_unleased(ArrayId id, const IndexSet& indices, const Outcome& outcome);
  void record_end(ArrayId id, const IndexSet& indices, bool ok, const std::string& cause, Time now);
  void note_end(ArrayState& array, std::optional<IndexSet> indices, const std::string& cause,
                Time at);
  void spread_ends();
  void spread_to(ArrayState& dependant, ArrayId ended, const std::optional<IndexSet>& news,
                 const std::string& cause, Time now);
  void forget_if_over(ArrayId id);
  void count_failures(ArrayState& array, const IndexSet& indices, Failure failure);
  void set_apart(ArrayState& array, std::uint32_t index);
  void set_apart_again(ArrayState& array, const IndexSet& indices, std::optional<Duration> longest);
  Apart apart_by(TaskId task) const;
  void add_class(ArrayState& array, ClassId in_class);
  Needs needs_of(const ArrayState& array, std::uint32_t index) const;
  void make_ready_by_files(ArrayState& array, IndexSet indices,
                           const std::function<void(const QueuePlace&, const IndexSet&)>& add);
  void forget_files(ArrayState& array, const IndexSet& indices);
  bool are_files_coming(const std::string& site) const;
  void not_coming(ArrayState& array, const std::string& site, const IndexSet& indices);

  struct End {
    ArrayId array;
    std::optional<IndexSet> indices;  ///< no value: look at all
    std::string cause;                ///< first failure, for dependants; empty: all went well
    Time at{};
  };

  Actions& actions_;
  ReadyQueue queue_;
  Bound bound_;
  TermsPool terms_;
  std::map<ArrayId, ArrayState> arrays_;
  std::set<ArrayId> bounded_;
  Totals totals_;
  std::unordered_map<ArrayId, std::vector<ArrayId>> dependants_;
  std::unordered_map<TaskId, TaskHistory> histories_;
  std::set<TaskId> fed_;                             ///< of those that run and stream their input
  std::unordered_map<ArrayId, std::string> causes_;  ///< first failure of arrays that go on
  std::deque<End> ends_;
  std::set<ArrayId> with_files_;
  std::map<std::string, std::uint64_t> coming_;  ///< by site: tasks whose files are
  std::vector<ArrayId> to_tell_;                 ///< in the order of their first end
  std::vector<ArrayId> to_give_up_;
  Time now_{};
  /// Of arrays that may not start before, or end behind; what has ended may be among the latter.
  std::set<std::pair<Time, ArrayId>> begins_, deadlines_;
  std::unordered_map<std::string, std::set<ArrayId>> singletons_;
  std::set<ArrayId> start_awaited_;  ///< something waits for starts of theirs
  std::uint64_t next_array_{1};
};

}  // namespace hpcbatch
