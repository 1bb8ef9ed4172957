// What the kernel says of this node's cpus (Documentation/ABI/stable/sysfs-devices-node,
// admin-guide/cputopology).
#pragma once

#include "pilot/policy/room.hpp"

#include <string>
#include <vector>

namespace hpcbatch::pilot {

/// Of these cpus; what nobody says is one node of memory, and a core each.  `root` is where the
/// kernel's files are.
Topology read_topology(const std::vector<unsigned>& cpus, const std::string& root = "/sys");

}  // namespace hpcbatch::pilot
