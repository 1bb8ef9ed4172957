// What pilots left behind in their outboxes, as events.
#pragma once

#include "model/event.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

/// From serialized wire::Result messages; what cannot be read is left out.
std::vector<AttemptEnded> results_of_outbox(const AllocationId& allocation,
                                            const std::vector<std::string>& results, Time now);

}  // namespace hpcbatch
