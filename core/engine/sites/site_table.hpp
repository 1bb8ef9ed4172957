// Sites and their allocations: what was asked for, what the batch system says of it, and when to
// ask for more or again.
#pragma once

#include "foresight/wait_history.hpp"
#include "model/action.hpp"
#include "model/event.hpp"
#include "model/histogram.hpp"
#include "model/site.hpp"
#include "model/snapshot.hpp"
#include "provision/plan.hpp"

#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch {

/// A shape that is not asked for until `until`, and why.
struct BackOff {
  /// In a row, by the first pause that each calls for: a bad one is not worse for many harmless
  /// ones before it.
  std::map<Duration, std::uint32_t> failures{};
  /// Commands in a row by which somebody else ended some: they count by themselves.
  std::uint32_t cancels{0};
  std::optional<Time> until;
  std::string why;
  Time failed_at{};                    ///< the latest of any of these
  std::optional<Time> cancelled_at{};  ///< the latest that somebody else ended
  /// The batch system's words where it refuses for good what was chosen; empty: it does not, or the
  /// pause that this called for is over.
  std::string never;

  bool has_failed() const { return !failures.empty() || cancels != 0; }
  void clear_failures();
};

/// What a look at the queue let expect of one allocation.
struct ForeseenStart {
  Time looked{};
  std::vector<Duration> waits{};  ///< from then on, in order, each as probable as the others
  bool by_limits{false};          ///< should all others run as long as they may: no later than that
  bool is_taken{false};           ///< by an allocation that was asked for since
  std::optional<Duration> quantile(double q) const;
};

bool is_fresh(const ForeseenStart& start, Time now);
/// What was looked at then is not old yet.
bool is_recent(Time looked, Time now);

struct StartBound {
  enum class By { Queue, Model, Waits };
  std::optional<Time> half{};  ///< as probable to be later as not; nothing: nobody can tell
  Time most{};                 ///< nine in ten are no later
  By by{By::Queue};            ///< what says so
  std::size_t from{0};         ///< waits that it has learned from; 0 of the queue as it is
};

/// What was said first of when one would start, in waits since it was asked for.
struct ToldStart {
  StartBound::By by{StartBound::By::Queue};
  std::optional<Duration> half{};
  Duration most{};
};

struct ShapeState {
  Shape shape;
  bool proven{false};
  BackOff back_off;
  provision::KnownWaits waits;
  foresight::WaitHistory wait_history;
  ForeseenStart foreseen;                 ///< of one that is asked for then
  foresight::Coverage looks_held{kNine};  ///< whether nine in ten were no later than foreseen
  std::string blind;                      ///< why the queue says nothing of it; empty: it does
  std::optional<Time> closed_at;          ///< then the last look showed that nothing starts there
  ForeseenStart learned;                  ///< the same by a model of the site's past
  std::size_t learned_from{0};            ///< waits of its site
  foresight::Coverage model_held{kNine};
  /// How good that was which was told of allocations that have started since.
  std::map<StartBound::By, foresight::WaitScore> told;
  std::optional<Keep> keep;
  bool was_kept{false};  ///< by this engine
  Time keep_counted{};   ///< up to when
  Time keep_saved{};
  std::int64_t keep_more{0};  ///< then there than asked for; below 0: less
  static constexpr double kNine = 0.9;
  void learn_wait(Duration wait, Time now);
  bool may_be_asked(Time now) const { return !back_off.until || *back_off.until <= now; }
};

/// How allocations of a site fared that have started since this engine did.
struct StartedWaits {
  struct Bounds {
    std::uint64_t told{0};  ///< allocations of which a time was told by which nine in ten start
    std::uint64_t held{0};  ///< of them, those that did start by then
  };
  WaitHistogram waits;
  std::map<StartBound::By, Bounds> bounds;
};

struct SiteState {
  Site site;
  std::vector<ShapeState> shapes;
  bool poll_in_flight{false};
  Time asked_at{};  ///< of the last poll
  Time next_poll{};
  std::uint32_t failed_polls{0};
  std::string trouble;  ///< of the last poll, or of one that is late; empty: none
  std::optional<Time> trouble_since;
  /// Of those pilots that are there and cannot write to it, why.
  std::map<PilotId, std::string> workspace_trouble;
  Time workspace_trouble_since{};
  std::set<PilotId> writers;  ///< pilots that are there and can
  StartedWaits started;
  /// At what others have in the queue.
  struct QueueLook {
    bool is_wanted{false};
    bool in_flight{false};
    bool is_impossible{false};  ///< its scheduler plugin has no word for that
    Time next{};
    std::string trouble;  ///< of the last one; empty: none
    Time asked_at{};
    std::uint32_t slow{0};      ///< looks in a row that failed or took long
    std::string model_trouble;  ///< why the site's model is not used where there is a file of it
  };
  QueueLook look;
  /// Most of them cannot: one alone is its node's trouble.
  bool workspace_in_trouble() const { return workspace_trouble.size() > writers.size(); }
  /// A list that fails once is no sign yet.
  bool answers() const { return failed_polls <= 1; }
};

struct AllocationEntry {
  Allocation facts;
  BatchState seen{BatchState::Queued};
  std::optional<Duration> time_left;  ///< as the batch system said at `seen_at`
  Time seen_at{};
  Time asked_at{};  ///< the end of the last submit command; lists asked for earlier may lack it
  Time may_arrive_until{};  ///< a submit command that nobody waits for any more may still be under
                            ///< way
  Time alive_at{};          ///< a pilot of it came or went: lists asked for earlier prove nothing
  Time cancelled_at{};      ///< the last cancel command
  std::optional<Time> suspended_at;  ///< while it is
  Time resumed_at{};                 ///< after it was suspended
  std::uint32_t absent_polls{0};     ///< trusted lists in a row that did not show it
  std::uint32_t never_arrived{0};    ///< submits whose answer was lost and that left no batch job
  bool of_no_use{false};
  std::string output_tail;            ///< that its batch job printed; no pilot is there
  bool did_well{false};               ///< a task has ended well there
  std::optional<Time> terminated_at;  ///< a pilot of it was ended from outside
  std::uint32_t pilots_away{0};       ///< of those that registered, not connected now
  std::set<std::uint32_t> let_go{};   ///< ranks of pilots that held nothing and were told to end
  ForeseenStart foreseen{};           ///< while it waits
  ForeseenStart learned{};            ///< by a model, when it was asked for
  std::optional<ToldStart> told{};
  std::optional<Duration> told_most{};  ///< nine in ten wait no longer, as it was foreseen when it
                                        ///< was asked for
  bool may_run_already{false};          ///< since before this engine's start
};

/// The end of an allocation, for the tasks that it still held.
struct AllocationOver {
  AllocationId id;
  Failure failure{Failure::PilotKilled};
  bool unexplained{false};
  std::string text;
};

class MadeShapes;

class SiteTable {
 public:
  SiteTable(Actions& actions, const std::vector<Site>& sites, std::string engine_name,
            std::uint64_t seed);

  void restore(const Snapshot& snapshot, Time now);
  void open(const provision::Ask& ask, Time now);
  void cancel(const AllocationId& id, Time now);
  void accepted(const AllocationAccepted& event, Time now);
  /// True where that was the end of it; one that ran in spite of a lost answer is not touched.
  [[nodiscard]] bool refused(const AllocationRefused& event, Time now);
  /// Ended allocations stay until `forget`; each is returned once.  Those `alive` have a pilot that
  /// is there.
  std::vector<AllocationOver> polled(const SitePolled& event, const std::set<AllocationId>& alive,
                                     Time now);
  void poll_failed(const SitePollFailed& event, Time now);
  /// Allocations of sites that are no longer configured, none of whose pilots has been there for
  /// long: nobody else can ever speak for them.  Each is returned once, as by `polled`.
  std::vector<AllocationOver> out_of_reach(const std::set<AllocationId>& alive, Time now);
  /// A pilot of it registered: settles what was unclear.  False where the allocation is over or was
  /// never ours.
  bool pilot_registered(const PilotRegistered& event, Time now);
  void pilot_gone(const PilotId& pilot, Time now);
  /// It said what it may not: it is not registered again.
  void overstepped(const PilotId& pilot, const std::string& text, Time now);
  /// Whether a pilot can write to its workspace; `trouble` empty: it can.
  void workspace_seen(const PilotId& pilot, const std::string& trouble, Time now);
  /// The batch system or a person ended a pilot: no more of its shape before the batch system has
  /// said why.
  void pilot_terminated(const AllocationId& id, Time now);
  /// A task has ended well there: what failed before it was asked for counts no more.
  void did_well(const AllocationId& id);
  /// Ends the pauses of a site's shapes; how many there were, nothing where there is no such site.
  std::optional<std::uint64_t> resume(const std::string& site);
  /// It held nothing and was told to end.
  void pilot_let_go(const PilotId& pilot);
  /// Its tasks are settled.  Only now its end is saved: an engine that starts before that must
  /// settle them.
  void forget(const AllocationId& id);
  /// A pilot of it can run nothing of what waits: its shape is not asked for again at once.
  void of_no_use(const AllocationId& id, const std::string& text, Time now);

  /// Ends back-offs that are over and asks for polls that are due.
  void on_time(Time now);
  std::optional<Time> next_wake() const;

  const AllocationEntry* find(const AllocationId& id) const;
  const SiteState* site(const std::string& name) const;
  const std::vector<SiteState>& sites() const { return sites_; }
  const std::map<AllocationId, AllocationEntry>& allocations() const { return allocations_; }
  const Shape* shape_of(const AllocationId& id) const;
  MadeShapes made_shapes();
  /// Why no batch system ever takes what tasks of such needs chose, as those said that were asked of
  /// late; nothing where some may.
  std::optional<std::string> refusal_for_good(const Needs& needs) const;
  bool refuses_any_for_good() const;
  /// Every allocation that lives is looked after, and nothing else is; for tests.
  void check_invariants() const;

 private:
  friend class Keeps;
  friend class QueueLooks;
  friend class SiteForecast;

  AllocationEntry* entry(const AllocationId& id);
  SiteState& state_of(const std::string& site);
  const ShapeState* shape_state(const Allocation& allocation) const;
  ShapeState* shape_state(const Allocation& allocation);
  AllocationId draw_name();
  void save(const AllocationEntry& entry);
  void runs(AllocationEntry& entry, Time now);
  void note_told(AllocationEntry& entry, Time now) const;
  void poll_soon(const std::string& site, Time at);
  void back_off(ShapeState& shape, Duration first, Duration most, const std::string& why, Time now);
  void pause_after_cancel(ShapeState& shape, const AllocationEntry& entry, const std::string& text,
                          Time now);
  void refused_for_good(ShapeState& shape, const std::string& why, const std::string& words,
                        Time now);
  std::optional<AllocationOver> follow(AllocationEntry& entry, const BatchJob& job, Time now);
  std::optional<AllocationOver> absent(AllocationEntry& entry, const SitePolled& event, Time now);
  void pause_after(ShapeState& shape, const AllocationEntry& entry, EndCause cause,
                   const std::string& text, const std::string& words, Time now);
  AllocationOver over(AllocationEntry& entry, EndCause cause, const std::string& reason, Time now);

  Actions& actions_;
  std::vector<SiteState> sites_;
  std::map<AllocationId, AllocationEntry> allocations_;
  bool any_told_to_stay_{false};
  std::set<std::string> ended_names_;  ///< of this start: a batch system may show them for a while
  std::string prefix_;
  std::mt19937_64 random_;
};

}  // namespace hpcbatch
