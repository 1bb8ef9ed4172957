// Points at which a test lets the engine die: HPCBATCH_CRASH_AT=LABEL or LABEL:N for the N-th time
// it passes there.
#pragma once

#include <string_view>

namespace hpcbatch {

/// Kills this process with SIGKILL if the environment says so; costs nothing measurable otherwise.
void crash_point(std::string_view label);

}  // namespace hpcbatch
