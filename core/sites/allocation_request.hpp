// A shape of a site as a scheduler plugin is asked for it.
#pragma once

#include "model/site.hpp"

#include "hpcbatch/scheduler.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

/// `name` is that of the allocation, `pilot` the command that runs on each of its nodes.
AllocationRequest allocation_request(const Site& site, const Shape& shape, const std::string& name,
                                     std::vector<std::string> pilot);

}  // namespace hpcbatch
