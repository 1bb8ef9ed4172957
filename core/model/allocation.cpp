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

}  // namespace hpcbatch
