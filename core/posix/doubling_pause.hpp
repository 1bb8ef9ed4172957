// How long is waited before something that fails is tried again.
#pragma once

#include <algorithm>

namespace hpcbatch {

/// After `failures` in a row that came before the latest: `first`, then twice as long each time,
/// `longest` at most.
template <class First, class Longest>
constexpr Longest doubling_pause(First first, Longest longest, unsigned failures) {
  constexpr unsigned kMostDoublings = 20;
  return std::min(longest, Longest(first) * (1U << std::min(failures, kMostDoublings)));
}

}  // namespace hpcbatch
