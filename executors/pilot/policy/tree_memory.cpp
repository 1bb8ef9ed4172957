#include "pilot/policy/tree_memory.hpp"

#include <algorithm>

namespace hpcbatch::pilot {
namespace {

constexpr int kPause = 19;  // of so many times what counting took

}  // namespace

std::uint64_t TreeMemory::estimate(std::uint64_t resident) const {
  return static_cast<std::uint64_t>(static_cast<double>(resident) * part_);
}

bool TreeMemory::is_due(std::uint64_t resident, std::uint64_t peak, Time now) const {
  return can_afford(now) && (!exact_ || estimate(resident) > peak);
}

void TreeMemory::counted(std::uint64_t resident, std::uint64_t exact, Time began, Time ended) {
  next_ = ended + kPause * (ended - began);
  next_for_limit_ = ended + (ended - began);
  if (exact == 0 || resident == 0) return;
  exact_ = exact;
  part_ = std::min(1.0, static_cast<double>(exact) / static_cast<double>(resident));
}

}  // namespace hpcbatch::pilot
