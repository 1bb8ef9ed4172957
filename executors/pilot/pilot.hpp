// The pilot put together: brings events to what it decides and does what that says.  Decides
// nothing itself.
#pragma once

#include "pilot/base/helper.hpp"
#include "pilot/base/removals.hpp"
#include "pilot/link/engine_link.hpp"
#include "pilot/node.hpp"
#include "pilot/pilot_history.hpp"
#include "pilot/policy/decide.hpp"
#include "pilot/processes/control_group.hpp"
#include "pilot/rehearsal.hpp"
#include "pilot/tasks/followers.hpp"
#include "pilot/tasks/pack_file.hpp"
#include "pilot/tasks/publisher.hpp"
#include "pilot/tasks/runner.hpp"
#include "pilot/workspace_watch.hpp"

#include <sys/resource.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace hpcbatch::pilot {

class Pilot {
 public:
  /// SIGTERM, SIGINT, SIGCHLD and `keeper_signal` are blocked by now.
  Pilot(std::string path, const wire::PilotFile& file, std::uint32_t rank, int keeper_signal,
        std::optional<rlimit> tasks_open_files);
  ~Pilot();
  Pilot(const Pilot&) = delete;
  Pilot& operator=(const Pilot&) = delete;

  /// Until it has left; what the process is to exit with.
  int run();

 private:
  struct Waiting {
    std::shared_ptr<const wire::Start> start;  // its own, or that of its first neighbour
    std::shared_ptr<const BaseEnvironment> base;
    std::shared_ptr<const BaseEnvironment> foreseen_base;
    bool follow{false};
  };

  void take_signals(int keeper_signal);
  void woke_late(Duration time);
  void reap();
  std::string read_outbox();

  void link_up(const std::string& address);
  void on_message(wire::ToPilot& message);
  /// `is_new`: which of the message's leases were not held before.
  void keep_recipes(wire::ToPilot& message, const std::vector<bool>& is_new);
  void follow(const wire::Follow& follow);
  void gather(wire::ToEngine& outgoing);
  void say_services();
  /// Why nothing can be written there; empty: it can.
  const std::string& workspace_trouble() const;
  void look_at_workspace();
  void say_workspace();

  void perform(Action& action);
  void drop_lease(const AttemptId& id);
  void launch(const Launch& action);
  void begun(const AttemptId& id);
  void fail(const Fail& action);
  void task_ended(const AttemptId& id, wire::Result result, bool staged,
                  const std::string& directory, std::vector<wire::Output> outputs);
  void deliver(const AttemptId& id, wire::Result result);
  void send_result(const AttemptId& id);
  void send_results();
  void send_followed();
  void write_outbox();
  void added();

  Time now_;
  wire::PilotFile file_;
  wire::PilotName name_;
  std::uint64_t incarnation_;
  PilotHistory history_;
  std::string work_;  // of this process, below the workspace
  Node node_;
  Loop loop_;
  Fd signals_;
  TaskProcesses task_processes_;
  Helpers helpers_;
  Removals removals_;
  PackFile pack_;
  ControlGroups groups_;
  WorkspaceWatch workspace_;
  Publisher publisher_;
  Runner runner_;
  std::optional<Rehearsal> rehearsal_;  // instead of it
  Followers followers_;
  Decide decide_;
  EngineLink link_;

  std::optional<Time> usable_until_;
  std::unordered_map<std::uint32_t, std::shared_ptr<const BaseEnvironment>>
      environments_;                                                  // of this link
  std::unordered_map<AttemptId, Waiting, AttemptHash> leases_;        // that have not started
  std::unordered_map<AttemptId, wire::Result, AttemptHash> results_;  // not acknowledged
  std::vector<AttemptId> started_;                                    // not told yet
  std::unordered_set<AttemptId, AttemptHash> unbegun_;  // launched, and wait for their services
  std::uint64_t services_said_{0};  // on this link; as Services counts their changes
  bool workspace_is_stuck_{false};
  std::string trouble_said_;          // of the workspace, on this link
  std::size_t waiting_said_{0};       // and how many results wait for it
  std::vector<AttemptId> to_send_;    // results that wait until their output is written
  std::size_t bytes_in_frame_{0};     // of the results that wait for the link to send
  std::vector<AttemptId> held_back_;  // results that wait until their followed output is sent
  bool more_to_follow_{false};        // than went into this round
  std::string leaving_;               // why; empty: we stay
  std::optional<int> exit_code_;
};

}  // namespace hpcbatch::pilot
