// The files that a task names: where they may be, and for a command under which names they lie in
// its own directory.
#pragma once

#include "api/read/read_task.hpp"

#include <string>

namespace hpcbatch {

/// Throws BadRequest, which begins with `what`.
void check_named_files(const TaskRequest& task, const std::string& what);

}  // namespace hpcbatch
