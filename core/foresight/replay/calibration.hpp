// What a trace does not say, and its cluster cannot be played without: how many nodes there were,
// and which jobs waited for another of their user, not for nodes.
#pragma once

#include "foresight/replay/trace.hpp"

#include <utility>
#include <vector>

namespace hpcbatch::foresight {

/// From each moment on: the most that were in use at once within a few hours before and after.
std::vector<std::pair<Seconds, std::int32_t>> nodes_over_time(const Trace& trace);
/// The most that were ever in use at once.
std::int32_t most_nodes_in_use(const Trace& trace);

/// Where a job waited though enough nodes were idle, and started when another of its user ended,
/// it is taken to have come after that one (a dependency, or a bound for its user that nobody told):
/// sets `after` to the place in `trace.jobs`.  Says of how many.
std::size_t find_dependencies(Trace& trace,
                              const std::vector<std::pair<Seconds, std::int32_t>>& nodes);

/// The most jobs that so many users or more had running at once, and none more: a bound that the
/// cluster set for all; 0: none to be seen.
std::int32_t bound_of_users(const Trace& trace);

}  // namespace hpcbatch::foresight
