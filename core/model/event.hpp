// Everything that can happen to the engine, as plain values.
#pragma once

#include "model/ids.hpp"
#include "model/resources.hpp"
#include "model/site.hpp"
#include "model/task.hpp"

#include "hpcbatch/scheduler.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hpcbatch {

// --- from clients ------------------------------------------------------------------------------

/// How an array ended that the engine no longer holds; looked up in the store for dependencies.
struct EndedArray {
  ArrayId id;
  IndexSet ok;
  IndexSet not_ok;
  IndexSet failed_first{};    ///< the tasks of the first failure, and
  std::string first_cause{};  ///< what it was, as their dependants are told
  /// The store has forgotten it: what still waits had found in it what it waits for.
  bool is_pruned{false};
};

/// All of it is accepted or nothing is.  `content` is a hash of the request: the same key again
/// with the same content gives the same ids.
struct TasksSubmitted {
  RequestId request;
  std::string client;
  std::string key;  ///< empty: none
  std::uint64_t content{0};
  std::vector<NewArray> arrays;
  std::vector<EndedArray> ended;  ///< those of the dependencies that the engine does not hold
  std::optional<ReadBy> read_by{};
};
/// Who waits for what it has submitted is there once more than before, or once less.
struct ReaderHeard {
  std::string reader;
  bool is_there{true};
};
struct CancelAsked {
  RequestId request;
  std::vector<Selection> tasks;
};
struct HoldAsked {
  RequestId request;
  std::vector<Selection> tasks;
  bool hold{true};  ///< false: release
};

/// What runs is ended, and runs again at no charge.
struct RequeueAsked {
  RequestId request;
  std::vector<Selection> tasks;
};
/// What an array is told anew; what is not said stays.
struct TermsChange {
  NeedsChange needs;
  std::optional<std::string> site;  ///< empty: any
  std::optional<std::vector<std::string>> tags;
  std::optional<std::int32_t> priority;
  std::optional<std::uint32_t> retries;
  std::optional<std::uint32_t> max_running;
  std::optional<std::vector<Dependency>> after;  ///< in place of all that it waits for
  std::optional<Time> begin, deadline;
  std::optional<bool> requeue;
  std::optional<std::string> name;
  bool any() const {
    return needs.any() || site || tags || priority || retries || max_running || after || begin ||
           deadline || requeue || name;
  }
};
/// All of them are changed or nothing is: what waits and what is held has the new terms.
struct UpdateAsked {
  RequestId request;
  std::vector<ArrayId> arrays;
  TermsChange change;
  std::vector<EndedArray> ended;  ///< as of TasksSubmitted
};

/// Ended tasks of one array that are to run again, read back from the store.
struct RevivedArray {
  ArrayId id;
  std::string client;
  NewArray array;             ///< `indices` are those to run again
  bool has_new_needs{false};  ///< then all of it that has not started has them from now on
  IndexSet all;               ///< every index the array ever had
  IndexSet ok;
  IndexSet not_ok;  ///< ended otherwise, and not to run again
  IndexSet failed;  ///< of those, as LiveArray has them
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      attempts;  ///< index, number of its last attempt
};
struct RetryAsked {
  RequestId request;
  std::vector<RevivedArray>
      arrays;  ///< with the dependants that ended because of them, predecessors first
  std::vector<EndedArray> ended;
};
/// Pilots are to be there whatever there is to do; `allocations` 0: no longer.
struct KeepAsked {
  RequestId request;
  std::string site;  ///< empty: the only one that has the shape
  std::string shape;
  std::uint32_t allocations{1};
  Time until{};
};
/// Shapes of a site that are paused after refusals or failures are asked for again at once.
struct ResumeAsked {
  RequestId request;
  std::string site;
};
struct StopAsked {
  enum class Mode : std::uint8_t { Leave, Drain, Now };
  Mode mode{Mode::Leave};
};

// --- from pilots -------------------------------------------------------------------------------

struct HeldAttempt {
  enum class State : std::uint8_t { Waiting = 1, Running = 2, Ended = 3, Publishing = 4 };
  AttemptId attempt;
  State state{State::Waiting};
};
struct PilotRegistered {
  PilotId pilot;
  std::uint64_t incarnation{0};
  std::string node;
  Resources capacity;
  std::optional<Duration> time_left;
  std::vector<HeldAttempt> held;
  std::string batch_number;
  std::vector<std::string> refusals;
  bool leaving{false};  ///< starts nothing more; why, it says next
  std::vector<Gpu> gpus{};
  /// The first engine start whose ConfirmPilot came to this process; 0: none has.
  std::uint64_t confirmed_by{0};
};
struct PilotDisconnected {
  PilotId pilot;
};
/// What a message of a pilot says that it has to do with, and that it is: all of it has to be true
/// before anything of the message is acted upon.  No event: Engine::overstep is asked.
struct PilotClaims {
  PilotId pilot;
  struct OfAttempt {
    AttemptId attempt;
    std::string_view said;  ///< what it says of it: the message's own word
  };
  std::vector<OfAttempt> attempts{};
  std::optional<Resources> capacity{};
  /// Of one that registers.
  struct Node {
    std::optional<Duration> time_left;  ///< no value: no end
  };
  std::optional<Node> node{};
};
/// It said what it may not (Engine::overstep), or more than any pilot says: it is not heard again.
struct PilotOverstepped {
  PilotId pilot;
  std::uint64_t incarnation{0};
  std::string why;
};
struct AttemptsStarted {
  PilotId pilot;
  std::vector<AttemptId> attempts;
};
struct AttemptEnd {
  AttemptId attempt;
  Outcome outcome;
  bool outputs_staged{false};  ///< its outputs wait for permission to be published
  bool stage_out{false};  ///< published on its site alone; the engine hears of it when they are
                          ///< where they belong
  std::vector<std::uint32_t> published{};  ///< then those of them that are there, by their place
  std::string missing_file{};              ///< of an input that was not there
  /// Of a pilot that holds room for a task whose head is another: not how the task ended.
  bool of_room{false};
};
struct AttemptsEnded {
  PilotId pilot;
  std::vector<AttemptEnd> ends;
};
/// They have ended at their pilot and are of no more concern to it; the engine hears how when their
/// outputs are where they belong, or when a KillAttempt has put an end to that.
struct StageOutPending {
  PilotId pilot;
  std::vector<AttemptId> attempts;
};
/// They could not be put where they belong now, and it is tried again.
struct OutputsDelayed {
  AttemptId attempt;
  std::string why;
};
struct AttemptsReturned {
  PilotId pilot;
  std::vector<AttemptId> attempts;
};
/// Something of a task's standard input is on its way to it, and cannot be had again.
struct InputGiven {
  TaskId task;
};
/// The services that live at the pilot, by name: all of them.  None do when it registers.
struct ServicesWarm {
  PilotId pilot;
  std::vector<std::string> services;
  std::vector<std::string> starting{};  ///< not ready for a while: it takes no task of theirs yet
};
/// Whether the pilot can write to its workspace.  It can when it registers.
struct WorkspaceSeen {
  PilotId pilot;
  std::string trouble;           ///< why not; empty: it can
  std::vector<AttemptId> ended;  ///< have ended; their results wait for the workspace
};
/// A GPU of the pilot's has been set aside: what is left of its capacity.
struct GpusSeen {
  PilotId pilot;
  Resources capacity;
  std::vector<Gpu> gpus;
};
/// How long it takes to the pilot and back, where that has changed.  None is known when it
/// registers.
struct LinkMeasured {
  PilotId pilot;
  Duration round_trip{};
};
struct PilotLeaving {
  PilotId pilot;
  std::string reason;
};

// --- from sites --------------------------------------------------------------------------------

struct AllocationAccepted {
  AllocationId allocation;
  std::string number;
};
struct AllocationRefused {
  AllocationId allocation;
  Refusal refusal{Refusal::Unclear};
  std::string text;
  bool may_be_under_way{false};  ///< of Unclear: the command may run on for as long as it was given
};
/// A complete, trusted list of the site's batch jobs that bear our names.  `asked` is when the
/// question was sent: what was submitted later may be missing.
struct SitePolled {
  std::string site;
  std::vector<BatchJob> jobs;
  Time asked{};
  /// The last line that batch jobs printed of which no pilot was ever there, by the allocation's
  /// name; of those that have ended or are not listed.
  std::map<std::string, std::string> output_tail{};
};
struct SitePollFailed {
  std::string site;
  std::string text;
};
/// What a look at a site's queue lets expect: waits from the look on, in order, each as probable as
/// the others.
struct QueueForeseen {
  std::string site;
  Time looked{};
  struct Start {
    std::vector<Duration> waits;
    bool by_limits{false};            ///< should all others run as long as they may
    std::string blind{};              ///< why there are none
    std::vector<Duration> learned{};  ///< the same by a model; none: there is none
    bool is_closed{false};            ///< nothing starts there at present, as `blind` says
  };
  std::map<std::string, Start> shapes;  ///< of an allocation that is asked for then
  std::map<std::string, Start> queued;  ///< of allocations that wait, by name
  std::string trouble{};                ///< the look failed, and why
  bool is_impossible{false};            ///< and will ever
  std::size_t model_waits{0};           ///< that the model has learned from; 0: there is none
  std::string model_trouble{};          ///< why there is none where a file of it is
};
/// What an ended allocation's pilots had left behind in their outboxes; read before anything is
/// called lost.
struct OutboxRead {
  AllocationId allocation;
  std::vector<AttemptEnd> results;
  std::vector<AttemptId> coming{};  ///< as in StageOutPending, of any of its pilots
};

/// What became of StageIn, a part of it at a time.
struct StagedIn {
  std::string site;
  ArrayId array;
  IndexSet there;
  struct Failed {
    IndexSet indices;
    Failure failure{Failure::StageInFailed};
    std::string text;
    bool can_be_tried_again{false};
  };
  std::vector<Failed> failed;
};

// --- from the clock and the store --------------------------------------------------------------

struct TimePassed {};

using Event =
    std::variant<TasksSubmitted, ReaderHeard, CancelAsked, HoldAsked, RequeueAsked, UpdateAsked,
                 RetryAsked, KeepAsked, ResumeAsked, StopAsked, PilotRegistered, PilotDisconnected,
                 PilotOverstepped, AttemptsStarted, AttemptsEnded, StageOutPending,
                 AttemptsReturned, InputGiven, ServicesWarm, LinkMeasured, PilotLeaving,
                 AllocationAccepted, AllocationRefused, SitePolled, SitePollFailed, QueueForeseen,
                 OutboxRead, StagedIn, OutputsDelayed, WorkspaceSeen, GpusSeen, TimePassed>;

}  // namespace hpcbatch
