// How much memory tasks use, and which of them is to end for it.
#pragma once

#include "pilot/policy/attempt.hpp"
#include "pilot/policy/decide.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

/// Which task is to end for its memory: decided from what each uses, may use, and the node has.
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

/// The memory of a tree of processes with what they share counted once.  To count it exactly is
/// dear, so that takes a twentieth of the time at most, and in between it is estimated.
class TreeMemory {
 public:
  /// From `resident`, the sum over all processes, in bytes.
  std::uint64_t estimate(std::uint64_t resident) const;
  /// It may be counted again, and was not yet or would come to more than ever before.
  bool is_due(std::uint64_t resident, std::uint64_t peak, Time now) const;
  bool can_afford(Time now) const { return now >= next_; }
  /// Where the estimate is over a limit, counting may take half of the time: the last count may be
  /// of before it grew.
  bool can_decide(Time now) const { return now >= next_for_limit_; }
  /// It was counted between two times; `exact` 0: the kernel does not tell.
  void counted(std::uint64_t resident, std::uint64_t exact, Time began, Time ended);
  /// As counted last; none: never.
  std::optional<std::uint64_t> exact() const { return exact_; }

 private:
  double part_{1};  // of the sum that is not counted twice
  std::optional<std::uint64_t> exact_;
  Time next_{};
  Time next_for_limit_{};
};

}  // namespace hpcbatch::pilot
