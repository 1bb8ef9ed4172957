#include "pilot/tasks/runner.hpp"

#include "pilot/base/clock.hpp"
#include "pilot/base/log_line.hpp"
#include "pilot/nodes/task_nodes.hpp"
#include "pilot/processes/process_tree.hpp"
#include "pilot/processes/spawn.hpp"
#include "pilot/tasks/slot.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch::pilot {

// The start of a task.  Its end is in runner_end.cpp, what is looked at in between in
// runner.cpp.

namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstMeasure = 100ms;

std::shared_ptr<const BaseEnvironment> minimal_base(const SetupChanges* setup) {
  auto base = std::make_shared<BaseEnvironment>(minimal_environment(environ));
  if (setup != nullptr) setup->apply(*base);
  return base;
}

}  // namespace

Runner::Runner(Loop& loop, PackFile& pack, ControlGroups& groups, Helpers& helpers,
               Removals& removals, TaskProcesses& task_processes, Place place, Callbacks callbacks)
    : loop_(loop),
      pack_(pack),
      groups_(groups),
      helpers_(helpers),
      removals_(removals),
      task_processes_(task_processes),
      place_(std::move(place)),
      callbacks_(std::move(callbacks)),
      services_(loop, task_processes,
                {[this](const AttemptId& id, pid_t pid) { service_began(id, pid); },
                 [this](const AttemptId& id, int error) { cannot_enter(id, error); },
                 [this](const AttemptId& id, const std::string& why) { start_plainly(id, why); },
                 [this](const AttemptId& id) { hand_back(id); },
                 [this](pid_t pid, std::uint64_t cpu_us, std::uint64_t peak) {
                   used_of_service(pid, cpu_us, peak);
                 }}),
      images_(helpers, [this](const AttemptId& id,
                              const ImageAnswer& answer) { image_answered(id, answer); }),
      nothing_(::open("/dev/null", O_RDWR | O_CLOEXEC)),
      minimal_(minimal_base(place_.setup)),
      kills_told_(groups.kills_around()) {}

Runner::~Runner() = default;

Slot& Runner::slot(unsigned number) {
  std::unique_ptr<Slot>& slot = slots_[number];
  if (!slot)
    slot = std::make_unique<Slot>(loop_, pack_, place_.scratch + "/slot" + std::to_string(number));
  return *slot;
}

void Runner::launch(const AttemptId& id, wire::Start start,
                    std::shared_ptr<const BaseEnvironment> base, const Placement& placement,
                    Time now) {
  Running& task = running_[id];
  task.id = id;
  task.start = std::move(start);
  task.placement = placement;
  task.slot = &slot(placement.slot);
  task.started_us = wall_clock_us();
  if (const auto refusal = prepare(task, base ? std::move(base) : minimal_)) {
    end(task, verdict_of(*refusal), false);
    return;
  }
  if (!measure_at_) measure_at_ = now + kFirstMeasure;
  if (task.input) task.ask_at = now;
  if (task.container && !task.planned) callbacks_.began(id);
}

std::optional<Refusal> Runner::prepare(Running& task, std::shared_ptr<const BaseEnvironment> base) {
  wire::Start& start = task.start;
  if (start.nodes_size() > 1) {
    if (auto refusal = join_nodes(task)) return refusal;
  } else if (start.ntasks() != 0 && start.container().empty() && !start.has_service()) {
    if (auto refusal = tell_launchers(task)) return refusal;
  }
  if (start.argv_size() == 0) return Refusal{Failure::ToolFailed, "it has no command", 0};
  if (has_directory(start)) {
    const std::string path = place_.work + "/" + attempt_directory(start.attempt());
    const auto make = [&path] { return ::mkdir(path.c_str(), 0700) == 0; };
    if (!make() && (errno != ENOENT || ::mkdir(place_.work.c_str(), 0700) != 0 || !make())) {
      Refusal refusal{Failure::WorkspaceLost,
                      "cannot make its directory " + path + ": " + std::strerror(errno), 0};
      callbacks_.workspace_failed(refusal.message);
      return refusal;
    }
    task.directory = path;
    put_directory(start, path);
    if (auto refusal = make_links(start, path)) return refusal;
  }
  if (auto refusal = check_inputs(start)) return refusal;
  task.runs_in = start.directory().empty() ? task.directory : start.directory();
  if (::access(task.runs_in.c_str(), F_OK) != 0) {
    return Refusal{Failure::StageInFailed,
                   "its directory " + task.runs_in +
                       " cannot be reached from this node: " + std::strerror(errno),
                   0};
  }
  auto opened = open_files(start, task.runs_in);
  if (auto* refusal = std::get_if<Refusal>(&opened)) return *refusal;
  task.slot->clean_temporary(removals_);
  if (auto refusal = look_at_container(task)) return refusal;
  limit_memory(task);
  return start_process(task, std::move(std::get<Files>(opened)),
                       {start.argv().begin(), start.argv().end()}, std::move(base));
}

/// Of a task over several nodes: the head's command finds the others, and another pilot runs what
/// holds its room and starts there what the command asks for.
std::optional<Refusal> Runner::join_nodes(Running& task) {
  wire::Start& start = task.start;
  const std::string& pilot = place_.names.pilot;
  const std::size_t dot = pilot.rfind('.');
  const std::string allocation = pilot.substr(0, dot);
  const std::string rank = pilot.substr(dot + 1);
  task.nodes = nodes_folder(place_.work.substr(0, place_.work.rfind('/')), allocation, start,
                            attempt_directory(start.attempt()));
  if (start.holds_room()) {
    const auto& nodes = start.nodes();
    const auto self = std::find_if(nodes.begin(), nodes.end(), [&](const wire::NodeOfTask& node) {
      return std::to_string(node.rank()) == rank;
    });
    for (const std::string& word :
         {place_.containers.program, std::string("node-agent"), task.nodes, allocation, rank,
          std::to_string(self - nodes.begin())})
      start.add_argv(word);
    return std::nullopt;
  }
  return put_nodes(task, allocation);
}

/// Of a task on one node that says how many processes of MPI it starts: a launcher would ask the
/// node, or Slurm.
std::optional<Refusal> Runner::tell_launchers(Running& task) {
  std::array<char, HOST_NAME_MAX + 1> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string name(host.data());
  task.start.add_nodes()->set_name(name.substr(0, name.find('.')));
  task.nodes = place_.scratch + "/nodes-" + attempt_directory(task.start.attempt());
  return put_nodes(task, place_.names.pilot);
}

/// What its command and the launchers of MPI read of its nodes, into the folder for that.
std::optional<Refusal> Runner::put_nodes(Running& task, const std::string& allocation) {
  wire::Start& start = task.start;
  std::uint32_t cpus = 1;
  for (const wire::Amount& amount : start.granted()) {
    if (amount.name() == "cpus")
      cpus = static_cast<std::uint32_t>(std::max<std::int64_t>(1, amount.value() / kWhole));
  }
  const TaskNodes nodes = nodes_of(start, allocation, cpus);
  const std::string why = make_nodes_folder(task.nodes, nodes, place_.containers.program);
  if (!why.empty()) {
    callbacks_.workspace_failed(why);
    return Refusal{Failure::WorkspaceLost, why, 0};
  }
  for (const auto& [name, value] : nodes_variables(task.nodes, nodes, cpus)) {
    wire::Variable* variable = start.add_variables();
    variable->set_name(name);
    variable->set_value(value);
  }
  return std::nullopt;
}

/// A control group is joined only for a limit of the task's own: it costs a tenth of what starting
/// a process does, and without a limit looking from time to time does as well.  Podman's containers
/// descend from no process of the task, so of them the group tells best.
void Runner::limit_memory(Running& task) {
  for (const wire::Amount& amount : task.start.granted()) {
    if (amount.name() == "memory")
      task.granted = static_cast<std::uint64_t>(amount.value() / kWhole);
  }
  task.told = task.start.memory() == 0 ? task.granted
                                       : static_cast<std::uint64_t>(task.start.memory() / kWhole);
  if (task.start.memory_is_limit()) task.limit = task.told;
  const bool is_podman = task.container && task.container->runtime.runtime == Runtime::Podman;
  if (task.limit == 0 && !is_podman) return;
  std::unique_ptr<ControlGroup>& group = task.slot->group;
  if (!group) group = groups_.make(task.placement.slot);
  if (!group) return;
  if (!group->limit_memory(task.limit)) {
    log_line("cannot set the memory limit of a control group: " +
             std::string(std::strerror(errno)) + "; memory is watched instead");
    return;
  }
  task.group = group.get();
  task.kills_before = group->memory_kills();
}

std::optional<Refusal> Runner::start_process(Running& task, Files files,
                                             std::vector<std::string> argv,
                                             std::shared_ptr<const BaseEnvironment> base) {
  const wire::Start& start = task.start;
  auto variables =
      task_variables(start, task.placement, place_.names, place_.devices, task.slot->temporary);
  if (place_.sharing != nullptr)
    place_.sharing->add_to(variables, task.placement.gpus, granted_gpus(start));
  variables["HPCBATCH_METRICS"] = metrics_file(task.slot->temporary);
  if (auto path = path_to_correct(*base, task.runs_in)) variables.emplace("PWD", std::move(*path));
  Planned planned{std::move(files), std::move(argv), TaskEnvironment(base, variables)};
  planned.captured_output = task.slot->output.begin(task.id, start.output_limit());
  planned.captured_error = task.slot->error.begin(task.id, start.output_limit());
  if (planned.captured_output < 0 || planned.captured_error < 0) {
    return Refusal{Failure::EngineError, "the pilot has no file descriptors left for another task",
                   0};
  }
  if (start.input_streamed()) {
    task.input = std::make_unique<StreamedInput>(
        loop_, [this, id = task.id](std::uint64_t offset, bool ended) {
          callbacks_.input_wanted(id, offset, ended);
        });
    planned.files.input = task.input->open();
  }
  if (task.container) {
    task.base = std::move(base);
    task.variables = std::move(variables);
    return start_in_container(task, std::move(planned));
  }
  if (!start.has_service()) return spawn_planned(task, planned);
  task.planned = std::make_unique<Planned>(std::move(planned));
  ask_service(task, std::move(base));
  return std::nullopt;
}

std::optional<Refusal> Runner::spawn_planned(Running& task, Planned& planned) {
  const Files& files = planned.files;
  const char* search = planned.environment.find("PATH");
  const std::vector<std::string> paths = candidates(planned.argv.front(), search);
  std::vector<char*> arguments;
  for (std::string& argument : planned.argv) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const unsigned cpu : task.placement.cpus) CPU_SET(cpu, &cpus);

  SpawnPlan plan;
  for (const std::string& path : paths) plan.programs.push_back(path.c_str());
  plan.argv = arguments.data();
  std::vector<char*> for_shell = plain_script_argv(arguments);
  plan.shell_argv = for_shell.data();
  plan.environment = planned.environment.pointers();
  plan.directory = task.runs_in.c_str();
  plan.standard_input = files.input ? files.input.get() : nothing_.get();
  plan.standard_output = files.output ? files.output.get() : planned.captured_output;
  plan.standard_error = files.error ? files.error.get() : planned.captured_error;
  plan.control_group = task.group != nullptr ? task.group->joining() : -1;
  plan.cpus = task.placement.cpus.empty() ? nullptr : &cpus;
  plan.open_files = place_.open_files ? &*place_.open_files : nullptr;
  if (task.start.has_umask()) plan.umask = task.start.umask();
  Spawned spawned = spawn(plan);
  if (spawned.failed_at == Spawned::Step::ControlGroup) {
    log_line("a task cannot join its control group: " + std::string(std::strerror(spawned.error)) +
             "; its memory is watched instead");
    task.group = nullptr;
    plan.control_group = -1;
    spawned = spawn(plan);
  }
  if (spawned.pid < 0) {
    const Verdict verdict =
        verdict_of(spawned, planned.argv.front(), task.runs_in, search == nullptr ? "" : search);
    return Refusal{verdict.failure, verdict.message, verdict.exit_code};
  }
  task.borrowed = OwnMemory::high_water();
  runs(task, spawned.pid);
  return std::nullopt;
}

void Runner::runs(Running& task, pid_t pid) {
  task.pid = pid;
  mains_[pid] = task.id;
  task_processes_.started(task.placement.slot, pid, task_id(task.start),
                          std::to_string(task.start.attempt().number()));
}

void Runner::give_input(const AttemptId& id, std::string_view bytes, std::uint64_t offset,
                        bool end) {
  const auto at = running_.find(id);
  if (at != running_.end() && at->second.input) at->second.input->give(bytes, offset, end);
}

void Runner::want_input_again() const {
  for (const auto& [id, task] : running_) {
    if (task.input) task.input->want_again();
  }
}

const Capture* Runner::capture(const AttemptId& id, unsigned stream) const {
  const auto at = running_.find(id);
  if (at == running_.end()) return nullptr;
  return stream == 1 ? &at->second.slot->output : &at->second.slot->error;
}

// What is looked at while tasks run: their memory, output that waits to be written, processes that
// are to be gone.

namespace {

using namespace std::chrono_literals;

constexpr Duration kMeasure = 250ms;
/// Once the kernel has killed a process of a task for its memory: a script may note the end of its
/// program until then, but others would wait for theirs for ever.
constexpr Duration kBereft = 2s;
// A task that reads at once is to wait for no look, and one that reads later to cost none.
constexpr Duration kFirstAsk = 2ms;
// Output is on disk after a second at the latest.
constexpr unsigned kFlushEach = 4;

}  // namespace

std::optional<Time> Runner::next() const {
  std::optional<Time> earliest = running_.empty() ? std::nullopt : measure_at_;
  if (const auto time = services_.next(); time && (!earliest || *time < *earliest)) earliest = time;
  for (const auto& [id, task] : running_) {
    for (const auto& at : {task.sweep_at, task.ask_at}) {
      if (at && (!earliest || *at < *earliest)) earliest = at;
    }
  }
  return earliest;
}

void Runner::tick(Time now) {
  services_.tick(now);
  images_.tick(now);
  std::vector<AttemptId> due;
  for (auto& [id, task] : running_) {
    if (task.ask_at && *task.ask_at <= now) look_for_asking(task, now);
    if (task.sweep_at && *task.sweep_at <= now) due.push_back(id);
  }
  for (const AttemptId& id : due) {
    if (const auto at = running_.find(id); at != running_.end()) sweep(at->second, now);
  }
  if (running_.empty()) {
    measure_at_.reset();
    return;
  }
  if (!measure_at_ || now < *measure_at_) return;
  measure_at_ = now + kMeasure;
  if (++measured_ % kFlushEach == 0) {
    for (auto& [id, task] : running_) {
      task.slot->output.flush();
      task.slot->error.flush();
    }
  }
  for (const MemoryVictim& victim : memory_victims(measure(now), place_.memory_capacity)) {
    callbacks_.over_memory(victim);
  }
}

void Runner::look_for_asking(Running& task, Time now) {
  if (task.pid > 0 && asks_for_input(task.pid, task.input->pipe(), task.unnamed_sleeps, now)) {
    task.ask_at.reset();
    task.input->asked();
    return;
  }
  task.ask_pause = std::clamp(2 * task.ask_pause, kFirstAsk, Duration(kMeasure));
  task.ask_at = now + task.ask_pause;
}

void Runner::count_exactly(Running& task) {
  const Time began = clock_now();
  std::uint64_t exact = 0;
  for (const pid_t pid : task.members) exact += proportional_memory(pid);
  task.tree.counted(task.resident, exact, began, clock_now());
}

std::uint64_t Runner::used_by(Running& task, Time now) {
  task.resident = 0;
  for (const pid_t pid : task.members) {
    if (const auto facts = facts_of(pid)) task.resident += facts->resident;
  }
  // What it has in common with its service is no memory of its own.
  if (task.resident > task.shared) task.resident -= task.shared;
  if (task.members.size() < 2) return task.resident;
  if (task.tree.is_due(task.resident, task.peak, now)) count_exactly(task);
  return task.tree.estimate(task.resident);
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
std::vector<MemoryUse> Runner::measure(Time now) {
  const bool any_without_group =
      std::any_of(running_.begin(), running_.end(),
                  [](const auto& entry) { return entry.second.group == nullptr; });
  auto members =
      any_without_group ? task_processes_.members() : std::map<unsigned, std::vector<pid_t>>{};
  std::vector<MemoryUse> uses;
  std::vector<MemoryVictim> killed_by_kernel;
  std::uint64_t together = 0;
  for (auto& [id, task] : running_) {
    std::uint64_t used = 0;
    if (const ControlGroup* group = task.group) {
      used = group->memory();
      if (!task.planned && group->memory_kills() > task.kills_before) {
        if (!task.bereft_since) task.bereft_since = now;
        if (now >= *task.bereft_since + kBereft) killed_by_kernel.push_back({id, ""});
      }
    } else {
      task.members = std::move(members[task.placement.slot]);
      used = used_by(task, now);
    }
    task.peak = std::max(task.peak, used);
    together += used;
    uses.push_back({id, used, task.granted, task.limit, task.told});
  }
  // Services are a luxury.
  together += services_.memory();
  if (place_.memory_capacity != 0 && together > place_.memory_capacity) services_.end_idle(0);
  // Before a task is ended for it, it is counted exactly.
  for (MemoryUse& use : uses) {
    Running& task = running_.at(use.id);
    const bool over = (use.limit != 0 && use.used > use.limit) ||
                      (place_.memory_capacity != 0 && together > place_.memory_capacity);
    if (task.group != nullptr || !over) continue;
    if (task.tree.can_decide(now)) count_exactly(task);
    if (const auto exact = task.tree.exact()) use.used = *exact;
  }
  for (const MemoryVictim& victim : killed_by_kernel) callbacks_.over_memory(victim);
  return uses;
}

// What tasks do with GPUs: counted for each, and ended where one takes what is others'.

namespace {

using namespace std::chrono_literals;

/// A driver that has not answered by then will not say more.
constexpr Duration kAnswersWithin = 3s;

std::uint64_t memory_of(const std::vector<pid_t>& members, const GpuSeen& seen) {
  std::uint64_t sum = 0;
  for (const GpuSeen::Process& process : seen.processes) {
    if (std::find(members.begin(), members.end(), process.pid) != members.end())
      sum += process.memory;
  }
  return sum;
}

std::string in_mebibytes(std::uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

}  // namespace

/// A program whose GPU fails fails with it, mostly before anybody else has seen that: whose fault
/// its end is can be told after another look at its GPUs.
bool Runner::waits_for_a_look(Running& task, Time now) {
  if (task.status == 0 || task.stopped_for || task.placement.gpus.empty()) return false;
  if (!task.look) {
    if (!callbacks_.look_at_gpus || !callbacks_.look_at_gpus()) return false;
    task.look = {now + kAnswersWithin, task.placement.gpus, wall_clock_us()};
  }
  if (now >= task.look->until) return false;
  task.sweep_at = task.look->until;
  return true;
}

/// Of one in trouble the tasks' ends are told by `stop`.
void Runner::judge_ends_on(const GpuSeen& seen, Time now) {
  if (!seen.was_asked || !seen.trouble.empty()) return;
  for (auto& [id, task] : running_) {
    if (!task.look || std::erase(task.look->unseen, seen.device) == 0) continue;
    if (task.look->unseen.empty()) task.sweep_at = task.look->until = now;
  }
}

void Runner::gpu_seen(const GpuSeen& seen, Time now) {
  judge_ends_on(seen, now);
  // What is counted is counted once a second.
  if (seen.was_asked) return;
  std::uint64_t energy = 0;
  if (seen.energy_mj) {
    std::uint64_t& before = gpu_energy_[seen.device];
    if (before != 0 && *seen.energy_mj > before) energy = *seen.energy_mj - before;
    before = *seen.energy_mj;
  }
  std::vector<Running*> here;
  bool any_without_group = false;
  for (auto& [id, task] : running_) {
    const auto& gpus = task.placement.gpus;
    if (std::find(gpus.begin(), gpus.end(), seen.device) == gpus.end()) continue;
    if (task.look) continue;
    here.push_back(&task);
    any_without_group = any_without_group || task.group == nullptr;
  }
  auto members =
      any_without_group ? task_processes_.members() : std::map<unsigned, std::vector<pid_t>>{};
  std::vector<MemoryVictim> over;
  for (Running* task : here) {
    const std::uint64_t memory = memory_of(
        task->group != nullptr ? task->group->members() : members[task->placement.slot], seen);
    task->gpu_use.add(seen, memory, energy, static_cast<unsigned>(here.size()));
    const std::uint64_t whole =
        seen.device < place_.gpu_memory.size() ? place_.gpu_memory[seen.device] : 0;
    const auto share = gpu_memory_share(granted_gpus(task->start), whole);
    if (share && memory > *share) {
      over.push_back({task->id, "it had " + in_mebibytes(memory) +
                                    " of its GPU's memory, and its part of " + in_mebibytes(whole) +
                                    " is " + in_mebibytes(*share)});
    }
  }
  for (const MemoryVictim& victim : over) callbacks_.over_gpu_memory(victim);
}

}  // namespace hpcbatch::pilot
