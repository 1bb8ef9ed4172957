// `node-run`: starts a command on the nodes of the task that it is called in, and is their processes'
// standard streams, signals and exit code.  Called `node-rsh HOST COMMAND...` it does what MPI's
// launchers ask of a remote shell.
#pragma once

#include <string>
#include <vector>

namespace hpcbatch::pilot {

int run_on_nodes(const std::vector<std::string>& arguments);
int run_as_rsh(const std::vector<std::string>& arguments);

}  // namespace hpcbatch::pilot
