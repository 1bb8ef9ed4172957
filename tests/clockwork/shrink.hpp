// A scenario that fails, without what it does not need for that.
#pragma once

#include "scenario.hpp"
#include "trial.hpp"

#include <functional>

namespace hpcbatch::clockwork {

/// Leaves incidents out, fewer and fewer at once, as long as it goes on failing in the same way
/// (Zeller, Hildebrandt: Simplifying and isolating failure-inducing input, 2002).  `progress` is
/// told how many are left.
Scenario shrink(Scenario scenario, const Verdict& verdict,
                const std::function<void(std::size_t)>& progress);

}  // namespace hpcbatch::clockwork
