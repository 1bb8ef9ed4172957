// Which task is to end for its memory: decided from what each uses, may use, and the node has.
#pragma once

#include "pilot/policy/attempt.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

struct MemoryUse {
  AttemptId id;
  std::uint64_t used{};
  std::uint64_t granted{};  // 0: nothing was said
  std::uint64_t limit{};    // that the user asked for; 0: none
  std::uint64_t told{};     // as its user knows it: `granted` may be what its kind used before
};

struct MemoryVictim {
  AttemptId id;
  std::string message;
};

/// Each task over its own limit; and where all together use more than `capacity` (0: unknown), the
/// one furthest above its share.
std::vector<MemoryVictim> memory_victims(const std::vector<MemoryUse>& uses,
                                         std::uint64_t capacity);

}  // namespace hpcbatch::pilot
