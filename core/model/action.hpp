// Everything the engine can ask the runtime to do, as plain values.  Actions are done in order;
// those that say "durable" wait until everything saved before them is on disk.
#pragma once

#include "model/ids.hpp"
#include "model/site.hpp"
#include "model/task.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch {

// --- to the store ------------------------------------------------------------------------------

/// All of one submission, which is kept once on its way: there may be a hundred thousand of them.
struct SaveArrays {
  RequestId request;  ///< whose recipes the runtime holds
  std::string client;
  std::string key;
  std::uint64_t content{0};
  Time submitted{};
  ArrayId first;
  std::vector<NewArray> arrays;  ///< their ids follow each other
  std::optional<ReadBy> read_by{};
  ArrayId id_of(std::size_t position) const { return ArrayId{first.value + position}; }
};
/// All of an array's tasks that their user holds.
struct SaveHold {
  ArrayId array;
  IndexSet held;
};
/// What an array waits for, and its other terms, are these from now on.
struct SaveTerms {
  ArrayId array;
  NewArray terms;                     ///< without its indices
  std::optional<std::string> name{};  ///< a new one
};
struct SaveLeases {
  PilotId pilot;
  std::vector<AttemptId> attempts;
  std::vector<std::uint32_t> members{};  ///< ranks of the other pilots that each of them has
};
struct DropLeases {
  std::vector<TaskId> tasks;
};
/// Leased tasks that their user cancelled: they end when their pilots, or the batch system, say so.
struct SaveCancelled {
  std::vector<TaskId> tasks;
};
/// Its pilot is about to be told that it may publish: from then on nobody can take that back.
struct SavePermitted {
  TaskId task;
};
/// An attempt that failed and will be followed by another; for `explain` and for the budgets of
/// retries.
struct SaveFailedAttempt {
  AttemptId attempt;
  PilotId pilot;
  std::string node;
  Outcome outcome;
  bool charged{false};  ///< it used up one of the user's retries
  bool unexplained{false};
};
/// The one terminal result.
struct SaveResult {
  AttemptId attempt;
  PilotId pilot;
  std::string node;
  Outcome outcome;
};
/// One result for many tasks that never started.
struct SaveResults {
  ArrayId array;
  IndexSet indices;
  Outcome outcome;
};
struct SaveArrayEnded {
  ArrayId array;
};
/// Ended tasks run again: their results are withdrawn.
struct SaveRevived {
  ArrayId array;
  IndexSet indices;
  std::optional<Needs> needs{};  ///< of the array from now on, where they have changed
};
struct SaveAllocation {
  Allocation allocation;
};
struct SaveKeep {
  Keep keep;
};
/// Who waits for arrays from now on; none: they go on without a reader.
struct SaveReader {
  std::vector<ArrayId> arrays;
  std::optional<ReadBy> by{};
};

// --- to clients (durable) ----------------------------------------------------------------------

struct AnswerSubmit {
  RequestId request;
  std::vector<ArrayId> ids;
};
struct AnswerRefused {
  RequestId request;
  std::string text;
  bool conflict{false};  ///< the key was used with other content
};
struct AnswerCount {
  RequestId request;
  std::uint64_t tasks{0};
  /// Of a cancel those that pilots have: they may end otherwise before they hear of it.  Of a hold
  /// those beside, which pilots have already: they go on.
  std::uint64_t at_pilots{0};
};
/// Some of an array's tasks ended: those who wait for it may be told.
struct TellEnded {
  ArrayId array;
};

// --- to pilots ---------------------------------------------------------------------------------

/// The pilots of one allocation that a task over several nodes has at once, the head first: that one
/// runs its command, the others hold room for what the command starts there.
struct NodesOfTask {
  struct Node {
    std::uint32_t rank{0};
    std::string name;
  };
  std::vector<Node> nodes;
};

/// Waits until the leases saved before it are written, though not until they are on disk.
struct SendLeases {
  PilotId pilot;
  struct Lease {
    AttemptId attempt;
    Resources granted;
    Amount
        memory{};  ///< that the task is told of, and may not exceed where that is a limit; 0: as granted
    bool memory_is_limit{false};
    bool runs_once{false};  ///< starts once at most
    std::optional<Duration> time_limit;
    std::shared_ptr<const NodesOfTask> nodes{};  ///< null: it has this pilot alone
    bool holds_room{false};                      ///< this pilot is not its head
  };
  std::vector<Lease> leases;
};
struct RecallLeases {
  PilotId pilot;
  std::uint32_t count{0};
};
struct KillAttempt {
  PilotId pilot;
  AttemptId attempt;
  Failure failure{Failure::Cancelled};
  bool silent{false};
};
/// Durable.
struct AcknowledgeResults {
  PilotId pilot;
  std::vector<AttemptId> attempts;
};
struct PermitPublish {
  PilotId pilot;
  AttemptId attempt;
};
struct WelcomePilot {
  PilotId pilot;
  std::uint64_t incarnation{0};
};
/// What was decided as this process registered is on disk: the leases of later starts, and of this
/// one, were given to no other process of that pilot.
struct ConfirmPilot {
  PilotId pilot;
  std::uint64_t incarnation{0};
  std::uint64_t engine_start{0};
};
struct EndPilot {
  PilotId pilot;
};
/// For so long it does not leave for having nothing to do; 0: from now on it does.
struct StayPilot {
  PilotId pilot;
  Duration time{};
};
/// It was given up: it kills what it runs and ends.
struct FencePilot {
  PilotId pilot;
  std::uint64_t incarnation{0};
  std::string overstepped{};  ///< what it said that it may not: nothing more of it is heard
};

// --- to sites ----------------------------------------------------------------------------------

/// Tasks of one array whose files are to be on the site before they can start there.  Answered by
/// StagedIn, for all of them in the end.
struct StageIn {
  std::string site;
  ArrayId array;
  IndexSet indices;
  bool of_each{false};  ///< each task has files of its own; else all have the same
};
/// Durable: the intent is on disk before the batch system is asked.
struct OpenAllocation {
  AllocationId allocation;
  std::string site;
  std::string shape;
};
struct CancelAllocation {
  AllocationId allocation;
  std::string site;
  std::string number;
};
struct PollSite {
  std::string site;
};
/// What others have in the queue, and what that lets expect; answered by QueueForeseen.
struct LookAtQueue {
  std::string site;
};
struct ReadOutbox {
  AllocationId allocation;
  std::string site;
};
/// The allocation is over: its key and files may go.  Durable: what its outbox held is on disk
/// first.
struct ForgetAllocation {
  AllocationId allocation;
  std::string site;
};

// --- to the loop -------------------------------------------------------------------------------

struct EngineIdle {};  ///< nothing is left to wait for: a drained engine may end

using Action =
    std::variant<SaveArrays, SaveHold, SaveTerms, SaveLeases, DropLeases, SaveCancelled,
                 SavePermitted, SaveFailedAttempt, SaveResult, SaveResults, SaveArrayEnded,
                 SaveRevived, SaveAllocation, SaveKeep, SaveReader, AnswerSubmit, AnswerRefused,
                 AnswerCount, TellEnded, SendLeases, RecallLeases, KillAttempt, AcknowledgeResults,
                 PermitPublish, WelcomePilot, ConfirmPilot, EndPilot, StayPilot, FencePilot,
                 StageIn, OpenAllocation, CancelAllocation, PollSite, LookAtQueue, ReadOutbox,
                 ForgetAllocation, EngineIdle>;

using Actions = std::vector<Action>;

}  // namespace hpcbatch
