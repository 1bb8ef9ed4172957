// What tasks do with GPUs: counted for each, and ended where one takes what is others'.
#include "pilot/tasks/runner.hpp"

#include <algorithm>

namespace hpcbatch::pilot {
namespace {

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

void Runner::gpu_seen(const GpuSeen& seen) {
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
