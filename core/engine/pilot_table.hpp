// Pilots that have registered, and the leases that they hold.
#pragma once

#include "engine/state/ready_queue.hpp"
#include "model/action.hpp"
#include "model/event.hpp"
#include "model/rare.hpp"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace hpcbatch {

struct PilotState;

/// The right of one pilot to run one attempt.
struct Lease {
  enum class State : std::uint8_t { Sent, Running, Publishing };
  AttemptId attempt;
  PilotId pilot;
  ClassId in_class{};
  Resources granted;
  bool counted{false};   ///< taken out of the pilot's free room; else it waits there for room
  bool has_left{false};  ///< its pilot has done with it: it takes no room there any more
  bool guessed{
      false};  ///< `granted` was not read back at a restart; settled when its pilot registers
  bool cancelled{false};            ///< its pilot was told, or will be when it is back
  bool to_hold{false};              ///< asked by its user, should it come back
  bool waits_for_workspace{false};  ///< it has ended, and its result waits there
  bool suspect{false};              ///< pilots died that had its task
  bool proven{false};               ///< it has run for long enough to be no suspect's rival
  /// Its pilot was told to end it as that; Ok: it was not.  An older one says that it was cancelled.
  Failure told{Failure::Ok};
  State state{State::Sent};
  Time since{};  ///< leased
  std::optional<Time> started;
  std::optional<Time> outputs_come_since;
  PilotState* held_by{nullptr};  ///< the table's own
  /// Of a task over several nodes: ranks of the pilots of the same allocation that hold room for it
  /// beside this one, which is its head.
  Rare<std::vector<std::uint32_t>> members{};
  PilotId member(std::uint32_t rank) const { return {pilot.allocation, rank}; }
};

struct PilotState {
  PilotId id;
  std::string site;
  std::string shape;
  std::vector<std::string> tags;
  std::vector<std::string> made_for;  ///< as its shape
  std::set<std::string> warm;         ///< services that live there
  std::set<std::string> starting;     ///< services whose tasks it does not take yet
  std::string node;
  std::uint64_t incarnation{0};
  Resources capacity;
  Resources free;
  std::vector<Gpu> gpus;                      ///< as far as somebody knows them
  std::optional<std::uint64_t> nothing_fits;  ///< news of the queue when none of it did
  std::optional<Time> end;                    ///< when tasks must have ended; no value: no end
  bool connected{false};
  bool registered{false};  ///< since this start of the engine
  bool leaving{false};
  bool ending{false};          ///< was told to end
  bool owed_an_answer{false};  ///< it came with an old result, which it is about to say again
  std::string leaving_reason;
  Time registered_at{};
  Time silent_since{};
  bool cancel_asked{false};           ///< its batch job, for its silence
  std::optional<Time> stays_until{};  ///< as it was told
  std::set<TaskId> leases;
  std::set<TaskId> in_room;    ///< of `leases`, those that have room; few
  std::deque<TaskId> backlog;  ///< the others, which wait there for room
  struct Share {
    std::uint32_t with_room{0};
    std::uint32_t waiting{0};
    friend bool operator==(const Share&, const Share&) = default;
  };
  std::map<ClassId, Share> classes;  ///< `leases` by class
  /// Room that is held for tasks over several nodes whose heads are others, by task.
  std::map<TaskId, Resources> claims;
  bool is_empty() const { return leases.empty() && claims.empty(); }
  Duration round_trip{0};  ///< of its link, as far as that is known
  bool recalled{false};    ///< asked to give leases back; not answered yet
  Time recalled_at{};
  std::size_t recalled_of{0};       ///< so many waited there
  Duration recall_pause{};          ///< until the next, where as many wait there then
  std::optional<ClassId> kept_for;  ///< room is kept for a task that was passed over
  Time kept_since{};
  /// When that room was expected to be there as it began to be kept: what ends until then may start.
  std::optional<Time> kept_until;
  std::string workspace_trouble;  ///< why it cannot write there; empty: it can
  bool takes_tasks() const {
    return connected && !leaving && !ending && !rests && workspace_trouble.empty();
  }
  std::uint32_t suspects{0};  ///< of `leases`
  bool on_trial{false};       ///< one of these has not run for long yet
  bool braked{false};         ///< its node is in doubt or bad: one task at a time
  bool rests{false};          ///< and not now
  bool did_well{false};       ///< a task has ended well there
  bool came_to_bad{false};    ///< its node was bad when it came
  bool is_at(const NodeName& where) const { return where.node == node && where.site == site; }
  NodeName at() const { return {site, node}; }
};

class PilotTable {
 public:
  PilotState* find(const PilotId& id);
  const PilotState* find(const PilotId& id) const;
  PilotState& add(const PilotId& id) {
    return pilots_.try_emplace(id, PilotState{.id = id}).first->second;
  }
  void remove(const PilotId& id) { pilots_.erase(id); }
  std::map<PilotId, PilotState>& all() { return pilots_; }
  const std::map<PilotId, PilotState>& all() const { return pilots_; }

  Lease* lease(TaskId task);
  const Lease* lease(TaskId task) const;
  /// The lease where the attempt is still the task's current one.
  Lease* current(const AttemptId& attempt);
  /// The same where it is that pilot's, or one's of that allocation: whoever speaks of an attempt
  /// can change nothing of another's.
  Lease* current(const PilotId& pilot, const AttemptId& attempt);
  Lease* current(const AllocationId& allocation, const AttemptId& attempt);
  /// A task comes back from its pilot and may be leased again under the same number of its attempt:
  /// what that pilot has said of it may still be on its way.
  void note_given_back(const Lease& lease) {
    std::set<PilotId>& pilots = given_back_[lease.attempt.task];
    pilots.insert(lease.pilot);
    for (const std::uint32_t rank : lease.members.get()) pilots.insert(lease.member(rank));
  }
  bool was_given_back(TaskId task, const PilotId& pilot) const;
  template <class IsLive>
  void forget_given_back(std::size_t live, const IsLive& is_live) {
    constexpr std::size_t kFew = 1024;
    if (given_back_.size() <= kFew + 2 * live) return;
    std::erase_if(given_back_, [&](const auto& entry) { return !is_live(entry.first); });
  }
  const std::unordered_map<TaskId, Lease>& leases() const { return leases_; }

  /// What a task is granted on a pilot that asks for so much: memory it did not ask for is its
  /// cpus' share.
  static Resources share(Resources amounts, const PilotState& pilot);
  /// How many tasks of these needs an empty pilot has room for.
  static std::uint64_t how_often(const Needs& needs, const PilotState& pilot);
  /// Whether a task of these needs could start on the pilot now, in `room`.
  static bool has_room(const Needs& needs, const PilotState& pilot, const Resources& room,
                       Time now);
  /// The same of a class, which may keep away from a node.
  static bool has_room(const ResourceClass& its_class, const PilotState& pilot,
                       const Resources& room, Time now);
  /// How many leases wait at their pilots for room.
  std::size_t backlogs() const { return backlogs_; }
  /// How many leases are of suspects.
  std::size_t suspects() const { return suspects_; }
  void grant(Lease lease);
  /// The pilot holds room for a task over several nodes whose head is another of its allocation.
  void claim(Lease& lease, PilotState& member, Resources granted);
  /// It no longer does.
  void unclaim(Lease& lease, PilotState& member);
  /// The lease for which that pilot holds room, where the attempt is still the current one.
  Lease* claimed(const PilotId& pilot, const AttemptId& attempt);
  void started(Lease& lease, Time now);
  /// Gives its room back before it ends.
  void leave_room(Lease& lease);
  /// It has failed by itself, and what it said is still being published: its end, whatever becomes
  /// of its pilot.
  void failed(const Lease& lease, Outcome outcome) {
    failed_[lease.attempt.task] = std::move(outcome);
  }
  const Outcome* failed(TaskId task) const;
  /// Why it was told that a node of it is lost, in words, until it ends.
  void note_lost(const Lease& lease, std::string why) {
    lost_[lease.attempt.task] = std::move(why);
  }
  const std::string* why_lost(TaskId task) const;
  /// Why the outputs of one that has left are not here yet, in `why_delayed` until it ends.
  void delayed(const Lease& lease, std::string why) {
    delayed_[lease.attempt.task] = std::move(why);
  }
  const std::string* why_delayed(TaskId task) const;
  /// Ends a lease and moves what waited at its pilot into the room it leaves.
  Lease release(TaskId task);
  /// Registered anew: room is counted afresh.
  void recount(PilotState& pilot);
  /// What a lease of before a restart takes of a pilot that has registered since.
  void settle(Lease& lease, const Needs& needs, const PilotState& pilot);
  /// The same of what it claims of another pilot; before that is counted afresh.
  static void settle_claim(const Lease& lease, const Needs& needs, PilotState& pilot);

  void check_invariants() const;

 private:
  void give_room_back(PilotState& pilot, const Lease& lease);
  void take_room(PilotState& pilot, Lease& lease);
  void wait_for_room(PilotState& pilot, const Lease& lease);
  void waits_no_more(PilotState& pilot, const Lease& lease);
  void count_backlog(PilotState& pilot);
  static Resources taken_of(const Needs& needs, const PilotState& pilot);
  static Amount memory_share(const Resources& amounts, const PilotState& pilot);

  std::map<PilotId, PilotState> pilots_;
  std::unordered_map<TaskId, Lease> leases_;
  std::unordered_map<TaskId, std::string> delayed_;
  std::unordered_map<TaskId, Outcome> failed_;
  std::unordered_map<TaskId, std::string> lost_;
  std::unordered_map<TaskId, std::set<PilotId>> given_back_;
  std::size_t backlogs_{0};
  std::size_t suspects_{0};
};

}  // namespace hpcbatch
