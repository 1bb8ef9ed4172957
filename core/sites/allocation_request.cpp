#include "sites/allocation_request.hpp"

#include <chrono>
#include <utility>

namespace hpcbatch {
namespace {

/// Lets the pilot see what the lines behind it change, which its tasks get as well.  A variable has
/// 128 KiB at most (execve(2), MAX_ARG_STRLEN): with more none of it is known.
constexpr const char* kBeforeSetup =
    "HPCBATCH_BEFORE_SETUP=$(env -0 2>/dev/null | tr '\\000' '\\001'); "
    "[ ${#HPCBATCH_BEFORE_SETUP} -lt 100000 ] || HPCBATCH_BEFORE_SETUP=; export "
    "HPCBATCH_BEFORE_SETUP";

std::vector<std::string> seen_by_the_pilot(std::vector<std::string> setup) {
  if (!setup.empty()) setup.insert(setup.begin(), kBeforeSetup);
  return setup;
}

}  // namespace

AllocationRequest allocation_request(const Site& site, const Shape& shape, const std::string& name,
                                     std::vector<std::string> pilot) {
  AllocationRequest request{
      .name = name,
      .partition = shape.partition,
      .nodes = shape.nodes,
      .cpus = shape.capacity.get(kCpus).value(),
      .memory = site.asks_for_memory
                    ? static_cast<std::uint64_t>(shape.capacity.get(kMemory).whole())
                    : 0,
      .gpus = {},
      .walltime = std::chrono::duration_cast<std::chrono::seconds>(shape.walltime),
      .options = site.options,
      .setup = seen_by_the_pilot(site.setup),
      .pilot = std::move(pilot),
      .directory = site.workspace + "/allocations"};
  for (const auto& [kind, amount] : shape.capacity.entries()) {
    if (kind.starts_with(kGpuPrefix)) {
      const std::string gpu = kind.substr(kGpuPrefix.size());
      request.gpus[gpu == kGpuWithoutKind ? "" : gpu] = static_cast<std::uint32_t>(amount.whole());
    }
  }
  return request;
}

}  // namespace hpcbatch
