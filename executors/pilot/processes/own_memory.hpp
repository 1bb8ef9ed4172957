// The memory of this process itself, which its children are told to have used.
//
// A child borrows it until its program starts, and Linux counts that in the child's peak for good
// (getrusage(2), ru_maxrss; exec_mmap() in fs/exec.c): no child's peak is below ours.
#pragma once

#include <cstdint>

namespace hpcbatch::pilot {

/// So little may stand in a child's peak that is ours: it is as good as nothing.
inline constexpr std::uint64_t kAsGoodAsNothing = std::uint64_t{8} << 20;

/// Linux counts what is resident in batches, for each cpu.
inline constexpr std::uint64_t kCountedLate = std::uint64_t{1} << 20;

/// What a child itself has had in memory, bytes; 0 where that is not known.
constexpr std::uint64_t own_peak_of(std::uint64_t told, std::uint64_t ours) {
  return told > ours + kCountedLate || ours <= kAsGoodAsNothing ? told : 0;
}

class OwnMemory {
 public:
  /// Bytes; at least as much as a child that starts now will be told to have had.
  static std::uint64_t high_water();
  /// Once it has grown by more than a quarter since: gives back what is free, and counts anew.
  void keep_small();

 private:
  std::uint64_t kept_{kAsGoodAsNothing};
};

}  // namespace hpcbatch::pilot
