// Whether what stands in braces in a task's texts is something that the task has.
#pragma once

#include "api/read/read_task.hpp"

#include <string>

namespace hpcbatch {

/// Throws BadRequest where a column is asked for that an item does not have, or where something looks
/// like a place and would stay as it is; `what` names the task.  Of a task alone only the files of its
/// streams have places.  The program of an interpreter that is no shell (`awk '{print}'`) has braces
/// of its own.
void check_places(const TaskRequest& task, const std::string& what);

}  // namespace hpcbatch
