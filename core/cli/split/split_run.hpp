// `split`: a data set as parts, one task each, and their merged result.
#pragma once

#include "cli/client/engine_client.hpp"
#include "cli/parse/command.hpp"

namespace hpcbatch {

/// Returns the exit code; throws CommandError or InterruptedByUser.
int split_data_set(const SplitCommand& command, const Session& session);

}  // namespace hpcbatch
