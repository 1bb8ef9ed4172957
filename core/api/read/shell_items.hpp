// An item is one argument, never a part of a program.
#pragma once

#include "api/read/bad_request.hpp"
#include "model/item.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

/// Throws BadRequest where an item would be put into the text that a shell runs: a file that is
/// called `$(rm x)` would be.  The item says which columns there are; `what` names the task.
void check_no_shell_reads_items(const std::vector<std::string>& command, const Item& item,
                                const std::string& what);

}  // namespace hpcbatch
