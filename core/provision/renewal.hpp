// When to ask for the allocation that follows one of a shape of which pilots are to be there all the
// time.
#pragma once

#include "foresight/ask_ahead.hpp"
#include "model/time.hpp"

#include <cstdint>
#include <vector>

namespace hpcbatch::provision {

/// The allocations of a shape that is kept.
struct Kept {
  std::uint32_t wanted{1};  ///< at once
  Duration until{};         ///< from now on: how long they are wanted
  /// Of each: until when tasks may run there, of one that waits as it is expected to start; where
  /// nobody knows, for ever.
  std::vector<Duration> left;
  std::vector<Duration> waits;  ///< of one that is asked for now, in order, each as probable as the
                                ///< others; empty: nobody knows
};

/// How many to ask for now: for those that are missing, and for those whose end comes no later than
/// their successor may.  Where nobody knows how long that waits, it is asked for at the end.
std::uint32_t renewals(Kept kept, const foresight::AskingCosts& costs);

}  // namespace hpcbatch::provision
