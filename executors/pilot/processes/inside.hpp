// Our program in a container: starts the task's command there, hands signals on to it, and reports
// how it began and ended.  As the first process of the container it does that a first process's
// duties: a program in its place would be deaf to signals, and codes of the runtime's own would be
// taken for the program's.
#pragma once

#include <string>
#include <vector>

namespace hpcbatch::pilot {

/// What the process is to exit with: as a shell says it of the command.
int run_inside(const std::string& report, const std::vector<std::string>& command);

}  // namespace hpcbatch::pilot
