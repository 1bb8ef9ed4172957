// Whether to submit the next of a chain of pilots now.
#pragma once

#include "foresight/job.hpp"

#include <vector>

namespace hpcbatch::foresight {

/// What an hour costs in which work waits for a pilot, against one in which a pilot waits for work
/// (the newsvendor's rule: with costs a and b it is time when the a/(a+b) quantile of the start
/// meets the end of the supply).  What is far ahead will be known better later: more than so many
/// idle pilot-hours are never risked, whatever work is worth.
struct AskingCosts {
  double waiting{19};
  double idle{1};
  Seconds most_idle{105 * kMinute};

  double quantile() const { return waiting / (waiting + idle); }
};

/// `starts`: drawn, in order, for one submitted now.
bool is_time_to_ask(const std::vector<Seconds>& starts, Seconds supply_ends,
                    const AskingCosts& costs);

}  // namespace hpcbatch::foresight
