// A member's process of a task over several nodes: it holds the room, and starts there what the
// task's command asks for by `node-run`.  The pilot runs it as it runs any task, so that limits,
// cpus and the end of all hold for whatever it starts.
#pragma once

#include <cstdint>
#include <string>

namespace hpcbatch::pilot {

/// Listens until it is killed.  `index`: which of the task's nodes this is.  Returns an exit code
/// where it cannot begin.
int run_node_agent(const std::string& folder, const std::string& allocation, std::uint32_t rank,
                   std::uint32_t index);

}  // namespace hpcbatch::pilot
