// Starts of tasks that are no plain process of the pilot: in a container, or forked by a
// service.
#include "pilot/base/clock.hpp"
#include "pilot/base/log_line.hpp"
#include "pilot/processes/process_tree.hpp"
#include "pilot/processes/spawn.hpp"
#include "pilot/services/service_socket.hpp"
#include "pilot/tasks/runner.hpp"
#include "posix/files.hpp"

#include <algorithm>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::pilot {

// A task in a container: from the look at its image to what is left of it.

namespace {

constexpr std::size_t kLongestReport = 1000;

/// A caller's folder of that name may be another machine's, and Podman fails where it is not there.
bool has_stale_runtime_folder(const TaskEnvironment& environment) {
  const char* folder = environment.find("XDG_RUNTIME_DIR");
  return folder != nullptr && ::access(folder, W_OK) != 0;
}

std::vector<std::string> lines_of(TaskEnvironment& environment) {
  std::vector<std::string> lines;
  for (char* const* line = environment.pointers(); *line != nullptr; ++line)
    lines.emplace_back(*line);
  return lines;
}

/// The image as its runtime takes it from now on.
std::optional<Refusal> take_image(const ImageAnswer& answer, ContainerPlan& plan) {
  using Said = ImageAnswer::Said;
  if (answer.said != Said::Ready)
    return Refusal{
        answer.said == Said::Missing ? Failure::ContainerMissing : Failure::ContainerFailed,
        answer.text};
  const bool is_tree = plan.runtime.runtime == Runtime::Charliecloud;
  plan.prepared = answer.text;
  return is_tree ? complete_tree(plan) : std::nullopt;
}

}  // namespace

std::optional<Refusal> Runner::look_at_container(Running& task) {
  if (task.start.container().empty()) return std::nullopt;
  auto plan = plan_container(task.start,
                             {.directory = task.runs_in,
                              .folders = {task.directory},
                              .temporary = task.slot->temporary,
                              .maker = place_.devices.maker(),
                              .has_gpus = !task.placement.gpus.empty()},
                             place_.containers);
  if (auto* refusal = std::get_if<Refusal>(&plan)) return *refusal;
  task.container = std::make_unique<ContainerPlan>(std::move(std::get<ContainerPlan>(plan)));
  return std::nullopt;
}

std::optional<Refusal> Runner::start_in_container(Running& task, Planned planned) {
  const ContainerPlan& plan = *task.container;
  if (has_to_be_prepared(plan.runtime, plan.image)) {
    const auto answer = images_.want(task.id,
                                     {.runtime = plan.runtime,
                                      .image = plan.image,
                                      .cache = place_.containers.images,
                                      .limit = place_.containers.images_limit,
                                      .environment = lines_of(planned.environment)},
                                     clock_now());
    if (!answer) {
      task.planned = std::make_unique<Planned>(std::move(planned));
      return std::nullopt;
    }
    if (auto refusal = take_image(*answer, *task.container)) return refusal;
  }
  put_in_container(task, planned);
  return spawn_planned(task, planned);
}

void Runner::image_answered(const AttemptId& id, const ImageAnswer& answer) {
  Running& task = running_.at(id);
  const auto planned = std::move(task.planned);
  auto refusal = take_image(answer, *task.container);
  if (!refusal) {
    if (task.group != nullptr) task.kills_before = task.group->memory_kills();
    // What it waited for its image is no time of its own.
    task.started_us = wall_clock_us();
    put_in_container(task, *planned);
    refusal = spawn_planned(task, *planned);
  }
  if (refusal) {
    end(task, verdict_of(*refusal), false);
  } else {
    callbacks_.began(id);
  }
}

void Runner::put_in_container(Running& task, Planned& planned) {
  std::map<std::string, std::string>& variables = task.variables;
  ContainerPlan& plan = *task.container;
  plan.memory = task.limit;
  planned.argv = container_argv(plan, planned.argv, planned.environment.names());
  for (auto& [name, value] : runtime_variables(plan)) variables[name] = value;
  if (has_stale_runtime_folder(planned.environment)) variables["XDG_RUNTIME_DIR"] = "";
  // Charliecloud does not start without one.
  if (planned.environment.find("USER") == nullptr) variables["USER"] = "user";
  planned.environment = TaskEnvironment(std::exchange(task.base, {}), std::exchange(variables, {}));
  task.removal = removal_argv(plan.runtime, plan.name);
  if (task.removal.empty()) return;
  task.removal_environment = lines_of(planned.environment);
}

ContainerEnd Runner::container_end(const Running& task) {
  const ContainerPlan& plan = *task.container;
  ContainerEnd end;
  end.runtime = name_of(plan.runtime.runtime);
  end.reports = !plan.keeps_entrypoint;
  if (end.reports)
    end.report = container_report(read_regular(AT_FDCWD, plan.report, kLongestReport).text);
  return end;
}

/// A runtime that was killed could not tidy up behind itself.
void Runner::remove_container(Running& task) {
  if (task.removal.empty() || !(task.by_force || WIFSIGNALED(task.status))) return;
  helpers_.start(
      [argv = std::move(task.removal), environment = std::move(task.removal_environment)] {
        const auto [status, output] = run_program(argv, environment);
        return status == 0 ? std::string() : output;
      },
      "the process that removed it died",
      [name = task.container->name](const std::string& trouble) {
        if (!trouble.empty()) log_line("cannot remove the container " + name + ": " + trouble);
      });
}

// The start of a task's process by a service that forks it.

void Runner::ask_service(Running& task, std::shared_ptr<const BaseEnvironment> base) {
  Planned& planned = *task.planned;
  ServiceRequest request;
  request.argv = planned.argv;
  request.environment = planned.environment.pointers();
  request.directory = task.runs_in;
  request.cpus = task.placement.cpus;
  request.open_files = place_.open_files;
  if (task.start.has_umask()) request.umask = task.start.umask();
  const Files& files = planned.files;
  services_.want(task.id, task.start.service(), std::move(base),
                 {.request = to_bytes(request),
                  .standard_input = files.input ? files.input.get() : nothing_.get(),
                  .standard_output = files.output ? files.output.get() : planned.captured_output,
                  .standard_error = files.error ? files.error.get() : planned.captured_error,
                  .control_group = task.group != nullptr ? task.group->joining() : -1});
}

void Runner::service_began(const AttemptId& id, pid_t pid) {
  Running& task = running_.at(id);
  task.planned.reset();
  // What it waited for its service is no time of its own.
  task.started_us = wall_clock_us();
  if (const auto facts = facts_of(pid)) task.shared = facts->resident;
  if (task.group != nullptr) task.kills_before = task.group->memory_kills();
  runs(task, pid);
  callbacks_.began(id);
}

void Runner::cannot_enter(const AttemptId& id, int error) {
  Running& task = running_.at(id);
  const auto planned = std::move(task.planned);
  const Spawned failed{-1, Spawned::Step::Directory, error};
  end(task, verdict_of(failed, planned->argv.front(), task.runs_in, ""), false);
}

void Runner::start_plainly(const AttemptId& id, const std::string& why) {
  Running& task = running_.at(id);
  const auto planned = std::move(task.planned);
  task.note = why;
  if (task.group != nullptr) task.kills_before = task.group->memory_kills();
  task.started_us = wall_clock_us();
  if (const auto refusal = spawn_planned(task, *planned)) {
    end(task, verdict_of(*refusal), false);
  } else {
    callbacks_.began(id);
  }
}

void Runner::hand_back(const AttemptId& waiting) {
  const AttemptId id = waiting;
  const Running& task = running_.at(id);
  if (!task.directory.empty()) removals_.add(task.directory);
  running_.erase(id);
  callbacks_.handed_back(id);
}

void Runner::used_of_service(pid_t pid, std::uint64_t cpu_us, std::uint64_t peak) {
  const auto main = mains_.find(pid);
  if (main == mains_.end()) return;
  Running& task = running_.at(main->second);
  task.cpu_us += cpu_us;
  task.peak = std::max(task.peak, peak);
}

}  // namespace hpcbatch::pilot
