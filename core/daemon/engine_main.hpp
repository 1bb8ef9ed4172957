// The engine as a process: reads the configuration, builds the objects, runs the loop until it is
// told to end.
#pragma once

#include "cli/parse/engine_options.hpp"

namespace hpcbatch {

/// Exit codes: 0 ended as asked, 1 cannot go on, 2 the configuration is wrong, and those of
/// engine_options.hpp.
int run_engine(const EngineOptions& options);

}  // namespace hpcbatch
