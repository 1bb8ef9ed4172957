// The paths and names in a submission: files that tasks name, what only one task may write, what
// stands in braces.
#pragma once

#include "api/read/read_task.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

// The files that a task names: where they may be, and for a command under which names they lie in
// its own directory.

/// Throws BadRequest, which begins with `what`.
void check_named_files(const TaskRequest& task, const std::string& what);

// Which paths of a submission are one task's own: nothing is written by several tasks.

struct SubmitRequest;

/// Whether its tasks have indices.
bool is_array(const TaskRequest& task);
/// Throws BadRequest, which begins with `what`, where several of its tasks would write one file.
void check_own_paths(const TaskRequest& task, const std::string& what);
/// The same for what is handed in together.
void check_written_once(const SubmitRequest& request);
/// That an array whose tasks are numbered is submitted alone: its ids are a run.
void check_numbered(const SubmitRequest& request);

// Whether what stands in braces in a task's texts is something that the task has.

/// Throws BadRequest where a column is asked for that an item does not have, or where something looks
/// like a place and would stay as it is; `what` names the task.  Of a task alone only the files of its
/// streams have places.  The program of an interpreter that is no shell (`awk '{print}'`) has braces
/// of its own.
void check_places(const TaskRequest& task, const std::string& what);

/// Of a task alone, into whose names nothing is put but into those of its streams' files: the names as
/// they stand, each doubled brace one.
void fill_nothing(TaskRequest& task);

}  // namespace hpcbatch
