// What tasks do with GPUs: counted for each, and ended where one takes what is others'.
#include "pilot/tasks/runner.hpp"

#include "pilot/base/clock.hpp"

#include <algorithm>

namespace hpcbatch::pilot {
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
