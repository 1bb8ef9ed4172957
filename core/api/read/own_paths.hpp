// Which paths of a submission are one task's own: nothing is written by several tasks.
#pragma once

#include "api/read/read_task.hpp"
#include "links/recipe.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

struct SubmitRequest;

/// Whether its tasks have indices.
bool is_array(const TaskRequest& task);
/// What of its recipe differs from task to task.
Filled filled_of(const TaskRequest& task);
/// Throws BadRequest, which begins with `what`, where several of its tasks would write one file.
void check_own_paths(const TaskRequest& task, const std::string& what);
/// The same for what is handed in together.
void check_written_once(const SubmitRequest& request);

}  // namespace hpcbatch
