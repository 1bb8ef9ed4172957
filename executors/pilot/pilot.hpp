// The pilot put together: brings events to what it decides and does what that says.  Decides
// nothing itself.
#pragma once

#include "pilot/base/files.hpp"
#include "pilot/fake_runner.hpp"
#include "pilot/link/engine_link.hpp"
#include "pilot/node.hpp"
#include "pilot/policy/decide.hpp"
#include "pilot/processes/control_group.hpp"
#include "pilot/processes/gpu_watch.hpp"
#include "pilot/processes/process_tree.hpp"
#include "pilot/results.hpp"
#include "pilot/tasks/pack_file.hpp"
#include "pilot/tasks/publisher.hpp"
#include "pilot/tasks/runner.hpp"
#include "pilot/tasks/streams.hpp"

#include <sys/resource.h>

#include <optional>
#include <string>
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
  /// Children of this process.
  struct Children {
    TaskProcesses of_tasks;
    Helpers helpers{[this](pid_t pid) { of_tasks.ours(pid); }};
    Removals removals{helpers};
    ControlGroups groups;
  };
  /// Where output is written, and whether it can be.
  struct Workspace {
    PackFile pack;
    WorkspaceWatch watch;
    bool is_stuck{false};  // as it was told last to who decides
    /// Empty: it can be written.
    const std::string& trouble() const {
      return pack.trouble().empty() ? watch.trouble() : pack.trouble();
    }
  };
  /// Tasks that were launched: which of them the engine is to be told of.
  struct Starts {
    std::vector<AttemptId> untold;
    std::unordered_set<AttemptId, AttemptHash> unbegun;  // wait for their services or images
  };
  /// On this link.
  struct Said {
    std::uint64_t services{0};  // as Services counts their changes
    std::string trouble;        // of the workspace
    std::size_t waiting{0};     // how many results wait for it
  };

  void take_signals(int keeper_signal);
  void start_gpus(const wire::PilotFile& file);
  void woke_late(Duration time);
  void reap();

  void link_up(const std::string& address);
  void on_message(wire::ToPilot& message);
  void follow(const wire::Follow& follow);
  void gather(wire::ToEngine& outgoing);
  void say_services();
  void look_at_workspace();
  void say_workspace();
  void gpu_seen(const GpuSeen& seen);
  void say_gpus();

  void perform(Action& action);
  void drop_lease(const AttemptId& id);
  void launch(const Launch& action);
  void begun(const AttemptId& id);
  void fail(const Fail& action);
  void task_ended(const AttemptId& id, wire::Result result, bool staged,
                  const std::string& directory, std::vector<wire::Output> outputs);
  void deliver(const AttemptId& id, wire::Result result);
  void send_results();
  /// True where there is more, and the link would take it.
  bool send_followed();
  void write_outbox();
  bool is_urgent() const;
  void added() { link_.added(is_urgent(), now_); }

  Time now_;
  SetupChanges setup_;
  Identity self_;
  PilotHistory history_;
  Node node_;
  Loop loop_;
  Fd signals_;
  Children children_;
  GpuWatch gpus_;
  GpuSharing sharing_;
  Workspace workspace_;
  Publisher publisher_;
  Runner runner_;
  std::optional<FakeRunner> fake_runner_;  // instead of it
  Followers followers_;
  Decide decide_;
  EngineLink link_;
  HeldLeases leases_{setup_};
  Results results_;
  Starts starts_;
  std::unordered_set<AttemptId, AttemptHash>
      holds_room_;  // that run here, and are no attempts of a task
  Said said_;
  std::string leaving_;  // why; empty: we stay
  std::optional<int> exit_code_;
};

}  // namespace hpcbatch::pilot
