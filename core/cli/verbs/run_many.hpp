// `run` of many tasks: what each prints when it has ended.
#pragma once

#include "cli/client/engine_client.hpp"
#include "cli/parse/command.hpp"

namespace hpcbatch {

/// 0 where all have succeeded, 1 where not, 128 + n where signal n cancelled them.  Throws
/// CommandError.
int run_many(const RunCommand& command, const Session& session);

}  // namespace hpcbatch
