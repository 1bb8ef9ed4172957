// Sees what really happens, whatever engine and pilots say of it: where tasks run, what users were
// promised, which transitions the world went through.
#pragma once

#include "engine/engine.hpp"
#include "engine/saved.hpp"
#include "model/action.hpp"
#include "model/event.hpp"
#include "pilot/policy/decide.hpp"

#include <map>
#include <set>
#include <string>

namespace hpcbatch::clockwork {

class PilotProcess;
class World;

class Observer {
 public:
  explicit Observer(World& world) : world_(world) {}

  // The engine.
  void engine_started(const Saved& saved);
  void event(const Event& event);
  /// The machine of the engine lost power before it was on disk: nobody knows of it any more.
  void lease_lost(const AttemptId& attempt);
  /// Before it is done.
  void action(const Action& action);

  // Pilots and what runs on their nodes.
  void pilot_action(const pilot::Action& action);
  void attempt_started(const PilotProcess& process, const pilot::AttemptId& id,
                       const Resources& capacity);
  /// Room that is held for a task whose head is another pilot.
  void claim_started(const PilotProcess& process, const pilot::AttemptId& id,
                     const Resources& capacity);
  void claim_ended(const PilotProcess& process, const pilot::AttemptId& id);
  void attempt_ended(const PilotProcess& process, const pilot::AttemptId& id,
                     const std::string& failure, bool staged);
  void published(const PilotProcess& process, const pilot::AttemptId& id);
  void outbox_written(const PilotProcess& process);
  void fenced(const PilotProcess& process);
  void killed(const PilotProcess& process);
  void exited(const PilotProcess& process);
  void out_of_reach(const AllocationId& id) { out_of_reach_.insert(id); }

  // Users: what was asked, and then answered for good.
  void hold_asked(RequestId request, const Selection& tasks, const Engine& engine);
  void retry_asked(ArrayId array) { retried_.insert(array); }
  void release_asked(const Selection& tasks);
  void cancel_asked(RequestId request, const Selection& tasks, const Engine& engine);
  void answered(RequestId request);
  void nobody_answers();  ///< what was asked and not answered may be so or not

 private:
  struct Run {
    std::string process;
    AllocationId allocation;
    Resources needs;
  };
  void leased(const SaveLeases& save);
  void use(const PilotProcess& process, const Resources& needs, const Resources& capacity);
  void check_end(const AttemptId& attempt, const PilotId& pilot, const Outcome& outcome);
  void allocation(const Allocation& facts);
  void check_alone(const PilotProcess& process, TaskId task);
  std::optional<std::string> missing_of(TaskId task, const Dependency& on) const;
  void check_runs_once(TaskId task);
  void check_dependencies(TaskId task);
  void ended_well(const PilotProcess& process, const pilot::AttemptId& id);
  void gone(const PilotProcess& process);
  std::set<TaskId> unleased(const Selection& tasks, const Engine& engine) const;

  World& world_;
  std::map<TaskId, std::map<std::uint64_t, Run>> running_;  ///< by epoch
  std::map<std::string, Resources> used_;                   ///< by process
  struct Well {
    std::string process;
    std::uint64_t epoch{0};
  };
  std::map<TaskId, Well> ended_well_;
  std::set<std::uint64_t> lost_;  ///< epochs
  /// Epochs that have another end already: of a task on a site that is gone, which its user has
  /// cancelled.
  std::set<std::uint64_t> over_;
  std::set<TaskId> ever_ended_, ever_ok_, ever_started_;
  std::set<ArrayId> retried_;                              ///< by hand
  std::map<std::string, std::set<TaskId>> not_in_outbox_;  ///< ended since it was last written
  std::map<AllocationId, AllocationState> allocations_;
  std::set<AllocationId> out_of_reach_;
  std::map<ArrayId, std::uint32_t> retries_;  ///< that their users allow
  std::map<TaskId, std::uint32_t> own_failures_, leases_;
  std::map<TaskId, std::uint32_t> of_the_node_;  ///< uncharged failures: its node was in doubt
  std::set<TaskId> held_, cancelled_;
  std::map<std::uint64_t, std::set<TaskId>> to_hold_, to_cancel_;  ///< by request
};

}  // namespace hpcbatch::clockwork
