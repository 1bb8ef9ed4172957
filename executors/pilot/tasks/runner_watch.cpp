// What is looked at while tasks run: their memory, output that waits to be written, processes that
// are to be gone.
#include "pilot/tasks/runner.hpp"

#include "pilot/base/clock.hpp"
#include "pilot/processes/asks_for_input.hpp"
#include "pilot/processes/process_tree.hpp"

#include <algorithm>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

constexpr Duration kMeasure = 250ms;
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
  if (task.pid > 0 && asks_for_input(task.pid, task.input->pipe())) {
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
      // One process of it is gone: the others may wait for it for ever.
      if (!task.planned && group->memory_kills() > task.kills_before)
        killed_by_kernel.push_back({id, ""});
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

}  // namespace hpcbatch::pilot
