// The engine: every decision of hpcbatch, as a function of events and the time.  No I/O, no clock,
// no thread.
#pragma once

#include "broker/broker.hpp"
#include "engine/pilot_table.hpp"
#include "engine/readers.hpp"
#include "engine/sites/site_table.hpp"
#include "engine/task_table.hpp"
#include "engine/trust/node_trust.hpp"
#include "model/action.hpp"
#include "model/event.hpp"
#include "model/site.hpp"
#include "model/snapshot.hpp"

#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace hpcbatch {

struct TaskCounts {
  std::uint64_t waiting{0}, held{0}, running{0}, unknown{0};
};

/// Why a task waits, or where it is.
struct Explanation {
  TaskState state{TaskState::Waiting};
  std::string text;
  std::vector<std::string> details;
};

class Engine {
 public:
  /// `seed` draws the names of allocations.
  Engine(const std::vector<Site>& sites, const Snapshot& snapshot, const LiveArrays& live_arrays,
         std::uint64_t seed, Time now);

  /// What has to be done about it, in order.  `now` never goes back.
  Actions on(const Event& event, Time now);
  /// The same, and what the event holds goes on in the actions: a submission may be large.
  Actions on(TasksSubmitted&& event, Time now);
  /// What of it a pilot may not say, in words: nothing of such a message is to be acted upon, and
  /// PilotOverstepped says so.  To be asked before anything of a message is.
  std::optional<std::string> overstep(const PilotClaims& claims) const;
  /// Whether what lies in the outbox of that allocation may say how the attempt ended.
  bool is_heard_from_outbox(const AllocationId& allocation, const AttemptId& attempt) const;
  /// When it wants TimePassed at the latest.
  std::optional<Time> next_wake() const;

  // What clients may look at between two events.
  TaskCounts counts() const;
  const TaskTable& tasks() const { return tasks_; }
  const PilotTable& pilots() const { return pilots_; }
  const SiteTable& sites() const { return sites_; }
  const NodeTrust& trust() const { return trust_; }
  /// Nodes of a site that are in doubt or bad.
  std::vector<std::string> avoided_nodes(const std::string& site) const;
  /// Nothing for a task that has ended.
  std::optional<Explanation> explain(TaskId task, Time now) const;
  std::optional<TaskState> state_of(TaskId task) const;
  /// An array whose tasks wait for that one and name a service, which is worth starting meanwhile.
  std::optional<ArrayId> served_after(ArrayId before) const;
  /// Nothing runs, waits, or is asked for.
  bool is_idle() const;
  bool is_draining() const { return drain_.on; }
  /// Shapes in which such tasks could run, `site/shape`, of each as the configuration has it.
  std::vector<std::string> shapes_for(const Needs& needs) const;
  /// Why no site could ever run it; nothing: one could.
  std::optional<std::string> misfit_of(const NewArray& array) const;

  /// Aborts where the parts contradict themselves or each other.  Builds of tests do it after every
  /// event while there are few tasks, and seldom where there are many.
  void check_invariants() const;

 private:
  friend class Explainer;

  void handle(const TasksSubmitted& event, Time now) { handle(TasksSubmitted(event), now); }
  void handle(TasksSubmitted&& event, Time now);
  void handle(const CancelAsked& event, Time now);
  void handle(const HoldAsked& event, Time now);
  void handle(const RequeueAsked& event, Time now);
  void handle(const UpdateAsked& event, Time now);
  void handle(const RetryAsked& event, Time now);
  void handle(const KeepAsked& event, Time now);
  void handle(const ResumeAsked& event, Time now);
  void handle(const ReaderHeard& event, Time now);
  void handle(const StopAsked& event, Time now);
  void handle(const PilotRegistered& event, Time now);
  void handle(const PilotDisconnected& event, Time now);
  void handle(const PilotOverstepped& event, Time now);
  void handle(const AttemptsStarted& event, Time now);
  void handle(const AttemptsEnded& event, Time now);
  void handle(const StageOutPending& event, Time now);
  void handle(const OutputsDelayed& event, Time now);
  void handle(const AttemptsReturned& event, Time now);
  void handle(const InputGiven& event, Time) { tasks_.input_given(event.task); }
  void handle(const ServicesWarm& event, Time now);
  void handle(const LinkMeasured& event, Time now);
  void handle(const WorkspaceSeen& event, Time now);
  void handle(const GpusSeen& event, Time now);
  void handle(const PilotLeaving& event, Time now);
  void handle(const AllocationAccepted& event, Time now);
  void handle(const AllocationRefused& event, Time now);
  void handle(const SitePolled& event, Time now);
  void handle(const SitePollFailed& event, Time now);
  void handle(const QueueForeseen& event, Time now);
  void handle(const OutboxRead& event, Time now);
  void handle(const StagedIn& event, Time now);
  void handle(const TimePassed& event, Time now);

  Actions settle(bool time_passed, Time now);
  void end_if_drained(Time now);
  void walk_invariants_if_due();
  void make_shapes_for(const std::vector<const Needs*>& coming);
  std::optional<std::string> misfit(const NewArray& array) const;
  std::optional<std::string> gpus_nobody_has(const Needs& needs) const;
  void restore_pilots(const Snapshot& snapshot, Time now);
  void reconcile(PilotState& pilot, const PilotRegistered& event, bool same_process, bool was_known,
                 Time now);
  void judge_newcomer(Time now);
  void return_lease(TaskId task, Time now);
  /// False where its pilot may not forget it yet.
  bool attempt_ended(const PilotId& pilot, const AttemptEnd& end, Time now);
  /// How the death of its pilot speaks against a task.
  enum class Blame : std::uint8_t { None, Shared, Alone };
  /// It is never to begin again once it may have begun.
  bool runs_once(TaskId task) const;
  bool asks_to_go_on(TaskId task, const Outcome& outcome) const;
  static std::optional<Duration> left_too_little(const PilotState& pilot, const Outcome& outcome,
                                                 Time now);
  void end_lease(const Lease& lease, Outcome outcome, Blame blame, Time now);
  bool is_guess_too_small(const Lease& lease, const Outcome& outcome) const;
  void cancel_if_it_waits(const AllocationId& id, Time now);
  void cancel_allocation(const AllocationId& id, const std::string& why, Time now);
  static constexpr const char* kBeforeItStarted = "cancelled by user before it started";
  struct Cancelled {
    std::uint64_t tasks{0};
    std::uint64_t at_pilots{0};  ///< of them
  };
  Cancelled cancel_tasks(const std::vector<Selection>& tasks, const std::string& why, Time now);
  void give_up_arrays(Time now);
  void end_unread(Time now);
  void hand_over(const std::vector<ArrayId>& arrays, const std::optional<ReadBy>& to, Time now);
  void forget_readers();
  void check_readers() const;
  IndexSet started(const ArrayState& array) const;
  std::string why_cancelled(TaskId task) const;
  void end_if_empty(PilotState& pilot);
  void watch_silence(Time now);
  /// Those of which a pilot is connected.
  std::set<AllocationId> allocations_with_pilots() const;

  // allocations.cpp
  void allocation_over(const AllocationOver& over, Time now);
  void lose_leases(const AllocationOver& over, Time now);
  std::vector<TaskId> blamed_for(const AllocationOver& over) const;
  void forget_if_empty(const AllocationId& id);
  void forget_if_over(const AllocationId& id);

  // pilots.cpp
  std::optional<std::string> overstep(const PilotId& pilot,
                                      const PilotClaims::OfAttempt& claim) const;
  std::uint64_t epoch_of_next(const PilotId& pilot, TaskId task, std::uint32_t number);

  // services.cpp
  bool waits_for_service(const PilotState& pilot, ClassId id) const;

  // filling.cpp
  void fill_pilots(Time now);
  struct PilotToFill {
    PilotState* pilot;
    std::vector<SendLeases::Lease> leases;
  };
  std::vector<PilotToFill> pilots_to_fill();
  void fill_rooms(std::vector<PilotToFill>& filled, Time now);
  void fill_backlogs(std::vector<PilotToFill>& filled, Time now);
  void send_leases(PilotToFill filled);
  enum class Into : std::uint8_t {
    Room,
    LowBacklog,  ///< only where that has room for a good many more
    Backlog
  };
  struct Turn {
    std::optional<QueuePlace> place;
    std::vector<ClassId> left_to_warm;  ///< passed, because another pilot has their service
    bool is_left{false};                ///< something was passed that is done sooner elsewhere
  };
  Turn next_for(const PilotState& pilot, Into where, Time now) const;
  bool could_start(const PilotState& pilot, ClassId id, Time now) const;
  bool is_left_to_warm(const PilotState& cold, ClassId id, Time now) const;
  bool is_known_to_be_full(const PilotState& pilot, Time now) const;
  struct Grant {
    Resources amounts;
    std::size_t way{0};  ///< of the needs
    double rank{1};      ///< among those of others (broker.hpp)
  };
  SendLeases::Lease lease_of(const AttemptId& attempt, const Needs& needs, const Grant& grant,
                             const PilotState& pilot) const;
  std::optional<SendLeases::Lease> lease_next(PilotState& pilot, Into where, Time now);
  std::uint64_t backlog_for(const PilotState& pilot, const ResourceClass& wanted) const;
  void call_back_for_idle(Time now);

  // kept_room.cpp
  void note_passed_over(const PilotState& pilot, const QueuePlace& taken, Time now);
  void note_overtaken(Time now);
  void keep_room(Time now);
  void keep_room_for(ClassId id, const std::set<ClassId>& younger, Time now);
  void foresee_kept_room(Time now);
  void keep_no_more_for(ClassId id);
  void keep_whole_sets();
  bool leaves_kept_room(const PilotState& pilot, ClassId id, Time now) const;
  std::optional<Time> room_comes(const PilotState& pilot, const ResourceClass& its_class,
                                 Time now) const;

  // several_nodes.cpp
  std::optional<std::vector<PilotState*>> members_for(const PilotState& head, ClassId id,
                                                      Time now) const;
  std::shared_ptr<const NodesOfTask> claim_members(TaskId task,
                                                   const std::vector<PilotState*>& members);
  static SendLeases claim_of(const Lease& lease, const PilotState& member,
                             const SendLeases::Lease& of_head);
  SendLeases claim_again(const Lease& lease, const PilotState& member) const;
  void free_members(Lease& lease);
  Lease take_lease(TaskId task);
  void lose_member(Lease& lease, PilotState& member, Failure as, const std::string& why);
  bool member_ended(const PilotId& id, const AttemptEnd& end);
  void blame_lost_member(const Lease& lease, Outcome& outcome) const;
  void reconcile_claims(PilotState& pilot, const std::vector<HeldAttempt>& there,
                        bool same_process);

  // nodes.cpp
  void watch_nodes(Time now);
  void watch_apart(Time now);
  bool is_suspect(TaskId task) const;
  void note_proven(PilotState& pilot, Time now);
  void watch_trial(PilotState& pilot, Time now);
  static bool is_unproven(const Lease& lease, Time at);
  bool may_be_tried(const ResourceClass& its_class, const PilotState& pilot, Time now) const;
  void weigh_node(const Lease& lease, Outcome& outcome, Ending& ending, Time now);
  void retire(PilotState& pilot);
  void recall_backlog(PilotState& pilot, Time now);
  TaskKind kind_of(TaskId task) const;
  bool has_another_pilot(const Needs& needs, const NodeName& than, Time now) const;
  bool may_have_another_node(const Needs& needs, const NodeName& than, Time now) const;
  bool has_another_of_its_kind(const PilotState& pilot, Time now) const;

  // brokering.cpp
  /// `goes_there`: it does not wait for a better device.
  std::optional<Grant> grant_for(const PilotState& pilot, ClassId id, const Resources& room,
                                 bool goes_there = false) const;
  double expected_on(const ResourceClass& its_class, std::string_view device) const;
  std::vector<broker::Device> devices(broker::Running& running, Time now) const;
  std::vector<broker::Way> ways_now(const ResourceClass& its_class,
                                    const std::vector<const PilotState*>& pilots, Time now) const;
  void weigh_devices(Time now);
  std::vector<std::pair<std::string, Duration>> known_runs(const Needs& needs) const;
  void learn_speed(const Lease& lease, Outcome& outcome);

  // allocations.cpp
  void keep_pilots(Time now);
  void cancel_what_was_kept(Time now);
  void take_back_unused(Time now);

  // waiting_tasks.cpp
  void end_refused_tasks(Time now);
  void end_late_tasks();
  void note_starts_for(const std::vector<Dependency>& after);
  void note_started(const Lease& lease);

  // waiting_tasks.cpp
  void hold_at_pilots(ArrayId array, const IndexSet& indices, bool hold, Time now);
  void hold_what_came_back();

  // stage_out.cpp
  void outputs_come(Lease& lease, Time now);
  void tell_staging(const Lease& lease, Outcome& outcome, Time now);

  // staging.cpp
  void stage_in_if_due(bool changed, Time now);
  void stage_in_files(Time now);
  struct StageInTarget {
    const SiteState* site;
    std::uint64_t room;  ///< tasks at once
    std::uint64_t most;  ///< that may be ahead of their turn there
    bool has_files;
  };
  std::vector<StageInTarget> stage_in_targets(const ArrayState& array, const Needs& needs,
                                              IndexSet& todo, Time now);
  void stage_in_files_of(const ArrayState& array, const Needs& needs, const IndexSet& waiting,
                         std::map<std::string, std::uint64_t>& ahead, Time now);
  bool may_stage_in_to(const SiteState& site, const ArrayState& array, const Needs& needs,
                       Time now) const;
  bool is_slow(const std::string& site, Time now) const;
  std::uint64_t room_at(const SiteState& site, const Needs& needs) const;

  // asking.cpp
  void ask_for_pilots(Time now);
  /// For each class, by its number: what waits, what runs, how long that takes.
  std::vector<provision::Demand> demands(Time now) const;
  std::map<AllocationId, std::uint32_t> nodes_together(Time now) const;
  double busy_part(const PilotState& pilot, const std::vector<provision::Demand>& classes,
                   Time now) const;
  std::optional<Duration> longest_for(const Needs& needs) const;
  Needs within_shapes(const Needs& grown, const Needs& least) const;

  struct Key {
    std::uint64_t content{0};
    std::vector<ArrayId> ids;
  };

  Actions actions_;
  TaskTable tasks_;
  PilotTable pilots_;
  SiteTable sites_;
  NodeTrust trust_;
  broker::Broker broker_;
  /// Whose devices were weighed last, and when; anew where pilots have come or gone.
  struct Weighed {
    std::uint64_t news{0};  ///< of the queue then
    Time at{};
  };
  Weighed weighed_;
  std::unordered_map<std::string, Key> keys_;
  Readers readers_;
  /// Ended; their outboxes are being read, or outputs of theirs are still being staged out.
  struct OverAllocation {
    AllocationOver over;
    bool outbox_read{false};
  };
  std::map<AllocationId, OverAllocation> over_;
  std::uint64_t engine_start_;
  Time started_at_;
  std::mt19937_64 random_;
  struct LastLease {
    PilotId pilot;
    AttemptId attempt;
  };
  LastLease last_lease_;
  std::map<ArrayId, IndexSet> came_back_held_;  ///< in this event
  std::optional<PilotId> newcomer_;             ///< registered for the first time, in this event
  struct Filling {
    /// Leases wait at one pilot that another could start, but the last recall is too new.
    std::optional<Time> recall_due;
    std::vector<const PilotState*> warm;  ///< while pilots are filled: those with services
    std::optional<Time> cold_due;  ///< then a pilot without their service may have some tasks
  };
  Filling filling_;
  struct StageInPace {
    std::map<std::string, Time> heard;  ///< by site to which files are coming: of the last that
                                        ///< arrived, or since when
    Time looked_at{};                   ///< which files to stage in
    std::optional<Time> due;            ///< and do that again
  };
  StageInPace stage_in_;
  Time next_look_{};  ///< for pilots to ask for, silent ones, room to keep
  bool work_changed_{true};
  bool any_braked_{false};
  bool any_on_trial_{false};
  std::optional<Time> nothing_since_;  ///< there has been any task
  /// It was asked to stop.
  struct Drain {
    bool on{false};
    std::optional<Time> by;  ///< nothing is leased any more: how long ends are waited for
    bool is_told{false};     ///< that nothing is left to do
  };
  Drain drain_;
  std::uint64_t events_since_walk_{0};
};

}  // namespace hpcbatch
