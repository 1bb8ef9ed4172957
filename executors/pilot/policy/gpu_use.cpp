#include "pilot/policy/gpu_use.hpp"

#include <algorithm>
#include <cmath>

namespace hpcbatch::pilot {

void GpuUse::add(const GpuSeen& seen, std::uint64_t memory, std::uint64_t energy_mj,
                 unsigned sharers) {
  memory_on_[seen.device] = memory;
  std::uint64_t sum = 0;
  for (const auto& [device, bytes] : memory_on_) sum += bytes;
  peak_ = std::max(peak_, sum);
  const unsigned parts = std::max(1U, sharers);
  busy_ += static_cast<double>(seen.busy) / parts;
  energy_mj_ += energy_mj / parts;
  ++looks_;
}

std::optional<unsigned> GpuUse::busy() const {
  if (looks_ == 0) return std::nullopt;
  return static_cast<unsigned>(std::lround(busy_ / looks_));
}

std::optional<std::uint64_t> gpu_memory_share(std::int64_t granted, std::uint64_t device_memory) {
  if (granted <= 0 || granted >= kWhole || device_memory == 0) return std::nullopt;
  return static_cast<std::uint64_t>(static_cast<double>(device_memory) *
                                    static_cast<double>(granted) / kWhole);
}

}  // namespace hpcbatch::pilot
