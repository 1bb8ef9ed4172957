// Opens one shared object and hands out its descriptor; the only place that knows Boost.DLL.
#pragma once

#include "hpcbatch/abi.h"
#include "hpcbatch/result.hpp"

#include <filesystem>

namespace hpcbatch {

/// Maps the file and finds its descriptor.  What was once mapped stays until the process ends, so
/// the pointer lives as long.  Nothing in the descriptor has been checked.
Result<const hpcbatch_plugin_descriptor*> open_library(const std::filesystem::path& file);

}  // namespace hpcbatch
