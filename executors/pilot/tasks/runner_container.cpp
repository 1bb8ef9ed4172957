// A task in a container: from the look at its image to what is left of it.
#include "pilot/base/clock.hpp"
#include "pilot/base/log_line.hpp"
#include "pilot/processes/run_program.hpp"
#include "pilot/tasks/runner.hpp"
#include "posix/regular_file.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace hpcbatch::pilot {
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

}  // namespace hpcbatch::pilot
