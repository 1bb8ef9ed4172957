// What is handed to qsub.
#pragma once

#include "settings.hpp"

#include "hpcbatch/scheduler.hpp"

#include <string>

namespace hpcbatch::pbs {

CommandLine qsub(const Settings& settings, const AllocationRequest& request,
                 const std::string& script_path);

}  // namespace hpcbatch::pbs
