// The batch script: one pilot on each node.
#pragma once

#include "hpcbatch/scheduler.hpp"

#include <string>

namespace hpcbatch::pbs {

std::string batch_script(const AllocationRequest& request);

}  // namespace hpcbatch::pbs
