#include "sites/allocation_request.hpp"

#include <chrono>
#include <utility>

namespace hpcbatch {

AllocationRequest allocation_request(const Site& site, const Shape& shape, const std::string& name,
                                     std::vector<std::string> pilot) {
  AllocationRequest request{
      .name = name,
      .partition = shape.partition,
      .nodes = shape.nodes,
      .cpus = shape.capacity.get(kCpus).value(),
      .memory = static_cast<std::uint64_t>(shape.capacity.get(kMemory).whole()),
      .gpus = {},
      .walltime = std::chrono::duration_cast<std::chrono::seconds>(shape.walltime),
      .options = site.options,
      .setup = site.setup,
      .pilot = std::move(pilot),
      .directory = site.workspace + "/allocations"};
  for (const auto& [kind, amount] : shape.capacity.entries()) {
    if (kind.starts_with(kGpuPrefix)) {
      request.gpus[kind.substr(kGpuPrefix.size())] = static_cast<std::uint32_t>(amount.whole());
    }
  }
  return request;
}

}  // namespace hpcbatch
