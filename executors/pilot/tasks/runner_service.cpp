// The start of a task's process by a service that forks it.
#include "pilot/base/clock.hpp"
#include "pilot/processes/process_tree.hpp"
#include "pilot/services/service_request.hpp"
#include "pilot/tasks/runner.hpp"

#include <algorithm>
#include <utility>

namespace hpcbatch::pilot {

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
