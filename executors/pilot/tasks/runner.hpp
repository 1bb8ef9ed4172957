// Runs tasks: each in its slot, from its start until the last of its processes is gone.
#pragma once

#include "pilot/base/files.hpp"
#include "pilot/policy/decide.hpp"
#include "pilot/policy/gpu_facts.hpp"
#include "pilot/policy/tree_memory.hpp"
#include "pilot/policy/verdict.hpp"
#include "pilot/processes/contained.hpp"
#include "pilot/processes/control_group.hpp"
#include "pilot/processes/gpu_watch.hpp"
#include "pilot/processes/prepare.hpp"
#include "pilot/processes/process_tree.hpp"
#include "pilot/processes/spawn.hpp"
#include "pilot/processes/surroundings.hpp"
#include "pilot/services/services.hpp"
#include "pilot/tasks/images.hpp"
#include "pilot/tasks/slot.hpp"
#include "pilot/tasks/streams.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/resource.h>

namespace hpcbatch::pilot {

class Runner {
 public:
  struct Place {
    PilotNames names;
    std::string work;     // where attempts' own directories are made; made with the first
    std::string scratch;  // the pilot's own
    Devices devices;
    ContainerGround containers;
    std::uint64_t memory_capacity{};        // bytes; 0: unknown
    std::vector<std::uint64_t> gpu_memory;  // bytes, by their numbers; none: unknown
    std::optional<rlimit> open_files;       // as tasks are to have it
    const GpuSharing* sharing{nullptr};
    const SetupChanges* setup{nullptr};
  };
  struct Callbacks {
    /// The task is gone.  `staged`: its outputs wait in `directory`, else that is being removed.
    std::function<void(const AttemptId&, wire::Result, bool staged, const std::string& directory,
                       std::vector<wire::Output>)>
        ended;
    /// All up to `offset` has been given to the task; `ended`: the end as well.
    std::function<void(const AttemptId&, std::uint64_t offset, bool ended)> input_wanted;
    std::function<void(const MemoryVictim&)> over_memory;
    std::function<void(const MemoryVictim&)> over_gpu_memory;
    /// The process of a task that a service was to fork is there.
    std::function<void(const AttemptId&)> began;
    /// Nothing of the task has run: its service takes a while to start, and another may have its
    /// room meanwhile.
    std::function<void(const AttemptId&)> handed_back;
    /// Nothing can be made in the workspace now, which is no task's fault.
    std::function<void(const std::string& why)> workspace_failed;
    /// Asks for a look at this node's GPUs, which `gpu_seen` is told; false: nobody looks at them.
    std::function<bool()> look_at_gpus;
  };

  Runner(Loop& loop, PackFile& pack, ControlGroups& groups, Helpers& helpers, Removals& removals,
         TaskProcesses& task_processes, Place place, Callbacks callbacks);
  ~Runner();

  /// The task runs when this returns, or its end is told by `ended` before that.  One that a
  /// service is to fork may begin later.
  void launch(const AttemptId& id, wire::Start start, std::shared_ptr<const BaseEnvironment> base,
              const Placement& placement, Time now);
  /// All of its processes are those of its session that have not left its group.
  void signal(const Signal& asked);
  void stop(const AttemptId& id, bool by_force, std::optional<Failure> failure,
            const std::string& message, Time now);
  void give_input(const AttemptId& id, std::string_view bytes, std::uint64_t offset, bool end);
  /// Tells a new link what `input_wanted` has told the old one.
  void want_input_again() const;

  /// A child of the pilot was reaped: a task, something of one, or a service.
  void reaped(pid_t pid, int status, const rusage& usage, Time now);
  const Services& services() const { return services_; }
  /// A task that runs will be followed by one that wants this service.
  void foresee(const AttemptId& id, const wire::Service& service,
               std::shared_ptr<const BaseEnvironment> base) {
    services_.foresee(id, service, base ? std::move(base) : minimal_);
  }
  void foresee_no_more(const AttemptId& id, Time now) { services_.foresee_no_more(id, now); }
  /// Pilot and tasks were stopped for that long.
  void suspended(Duration time) { services_.suspended(time); }
  /// Memory, output that waits, processes that are left.
  void tick(Time now);
  /// What the tasks of a GPU do with it: once a second.
  void gpu_seen(const GpuSeen& seen, Time now);
  std::optional<Time> next() const;

  /// What is captured of a task that runs; null where it does not.
  const Capture* capture(const AttemptId& id, unsigned stream) const;

 private:
  /// All that the start of a process takes.
  struct Planned {
    Files files;
    std::vector<std::string> argv;
    TaskEnvironment environment;
    int captured_output{-1};
    int captured_error{-1};
  };
  /// At the GPUs of a task that failed, before whose fault its end was is judged.
  struct AwaitedLook {
    Time until;
    std::vector<unsigned> unseen;
    std::int64_t ended_us{};  // of the task
  };
  struct Running {
    AttemptId id;
    wire::Start start;
    Placement placement;
    Slot* slot{};
    ControlGroup* group{};  // null: not in one
    std::string directory;  // its own; empty: none
    std::string nodes;  // the folder of what its nodes know of each other; empty: it has one node
    std::string runs_in;
    std::unique_ptr<StreamedInput> input;
    std::optional<Time> ask_at;  // whether it waits for its input
    Duration ask_pause{};
    UnnamedSleeps unnamed_sleeps;
    std::unique_ptr<ContainerPlan> container;  // null: none
    std::vector<std::string> removal;          // of what its runtime leaves when it is killed
    std::vector<std::string> removal_environment;
    std::optional<Time> tidied_until;  // by its runtime, whose own processes are left alone so long
    pid_t pid{-1};
    std::int64_t started_us{};
    bool main_lives{true};
    bool by_force{false};
    int status{0};
    std::uint64_t cpu_us{0};
    std::uint64_t peak{0};
    std::uint64_t borrowed{0};  ///< of our own memory, when it started
    std::uint64_t read_bytes{0};
    std::uint64_t written_bytes{0};
    GpuUse gpu_use;
    std::uint64_t granted{0};  // memory
    std::uint64_t limit{0};    // of it, that the user asked for; 0: none
    std::uint64_t told{0};     // of it, as the user knows it
    std::uint64_t kills_before{0};
    std::optional<Time> bereft_since;  // a process of it was killed for its memory
    std::optional<Failure> stopped_for;
    std::string stop_message;
    std::unique_ptr<Planned> planned;  // while a service is asked for its process, or for its image
    std::shared_ptr<const BaseEnvironment> base;  // while it waits for its image
    std::map<std::string, std::string> variables;
    std::string note;            // said of it however it ends
    std::uint64_t shared{0};     // resident bytes that it has from its service
    std::vector<pid_t> members;  // when they were looked at last
    std::uint64_t resident{0};   // the sum of theirs
    TreeMemory tree;
    bool doubted{false};
    std::optional<Time> sweep_at;
    std::optional<Time> whose_term_until;
    std::optional<AwaitedLook> look;  // it failed on GPUs
    Duration sweep_pause{};
  };

  Slot& slot(unsigned number);
  std::optional<Refusal> prepare(Running& task, std::shared_ptr<const BaseEnvironment> base);
  std::optional<Refusal> join_nodes(Running& task);
  std::optional<Refusal> tell_launchers(Running& task);
  std::optional<Refusal> put_nodes(Running& task, const std::string& allocation);
  std::optional<Refusal> start_process(Running& task, Files files, std::vector<std::string> argv,
                                       std::shared_ptr<const BaseEnvironment> base);
  std::optional<Refusal> look_at_container(Running& task);
  std::optional<Refusal> start_in_container(Running& task, Planned planned);
  void image_answered(const AttemptId& id, const ImageAnswer& answer);
  /// The command with the runtime before it, which has some variables of its own.
  static void put_in_container(Running& task, Planned& planned);
  static ContainerEnd container_end(const Running& task);
  void remove_container(Running& task);
  std::optional<Refusal> spawn_planned(Running& task, Planned& planned);
  void ask_service(Running& task, std::shared_ptr<const BaseEnvironment> base);
  void runs(Running& task, pid_t pid);
  void service_began(const AttemptId& id, pid_t pid);
  void cannot_enter(const AttemptId& id, int error);
  void start_plainly(const AttemptId& id, const std::string& why);
  void hand_back(const AttemptId& id);
  void used_of_service(pid_t pid, std::uint64_t cpu_us, std::uint64_t peak);
  void limit_memory(Running& task);
  static void look_for_asking(Running& task, Time now);
  static void add_usage(Running& task, const rusage& usage);
  bool is_tidied(Running& task, Time now);
  void sweep(Running& task, Time now);
  bool waits_for_a_look(Running& task, Time now);
  void judge_ends_on(const GpuSeen& seen, Time now);
  std::vector<pid_t> members_of(const Running& task);
  bool nothing_adopted();
  void finish(const AttemptId& id);
  /// Ends what was captured of it, and says where that is and what of it is missing.
  void keep_output(Running& task, wire::Result& result);
  void end(Running& task, const Verdict& verdict, bool ran);
  static void keep_metrics(const Running& task, wire::Result& result);
  wire::Result result_of(Running& task, const Verdict& verdict, bool ran);
  std::vector<MemoryUse> measure(Time now);
  /// Of a task without a control group.
  static std::uint64_t used_by(Running& task, Time now);
  static void count_exactly(Running& task);

  Loop& loop_;
  PackFile& pack_;
  ControlGroups& groups_;
  Helpers& helpers_;
  Removals& removals_;
  TaskProcesses& task_processes_;
  Place place_;
  Callbacks callbacks_;
  Services services_;
  Images images_;
  Fd nothing_;  // /dev/null
  std::shared_ptr<const BaseEnvironment> minimal_;
  std::map<unsigned, std::unique_ptr<Slot>> slots_;
  std::unordered_map<AttemptId, Running, AttemptHash> running_;
  std::unordered_map<pid_t, AttemptId> mains_;
  OwnMemory own_memory_;
  std::optional<Time> measure_at_;
  unsigned measured_{0};
  std::uint64_t kills_told_{0};                   // of those outside our groups
  std::map<unsigned, std::uint64_t> gpu_energy_;  // mJ, of each when it was looked at last
};

}  // namespace hpcbatch::pilot
