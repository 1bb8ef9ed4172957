// One scenario in a process of its own, so that an engine that aborts is a finding like any other.
#pragma once

#include "scenario.hpp"
#include "tally.hpp"

#include <cstdint>
#include <string>

namespace hpcbatch::clockwork {

struct Verdict {
  std::string wrong;  ///< empty: nothing
  std::uint64_t fingerprint{0};
  bool is_clean() const { return wrong.empty(); }
};

/// What went wrong without what differs from run to run: numbers and names.
std::string kind_of(const std::string& wrong);

/// In this process; aborts where an invariant does not hold.
Verdict run_here(const Scenario& scenario, Tally& tally);
/// In a child.
Verdict run_apart(const Scenario& scenario);

}  // namespace hpcbatch::clockwork
