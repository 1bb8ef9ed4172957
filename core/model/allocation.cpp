#include "model/allocation.hpp"

#include <array>

namespace hpcbatch {
namespace {

constexpr std::array<std::string_view, 6> kAllocationStates{"intended", "submitting", "unclear",
                                                            "queued",   "running",    "ended"};

}  // namespace

std::string_view to_string(AllocationState state) {
  return kAllocationStates[static_cast<std::size_t>(state)];
}

std::optional<AllocationState> parse_allocation_state(std::string_view word) {
  for (std::size_t i = 0; i < kAllocationStates.size(); ++i) {
    if (kAllocationStates[i] == word) return static_cast<AllocationState>(i);
  }
  return std::nullopt;
}

}  // namespace hpcbatch
