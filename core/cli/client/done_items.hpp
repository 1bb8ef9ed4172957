// What became of submissions: their exit codes, and of a list of items those that ended well and are
// not run again.
#pragma once

#include "cli/client/engine_client.hpp"
#include "cli/parse/command.hpp"

#include <boost/json/object.hpp>

#include <string>

namespace hpcbatch {

/// The task runs only what `--skip-done` leaves of its items, where that is said; how many were left
/// out is told on standard error.  False: nothing is left to run.  Throws CommandError where there
/// is no such submission, and where it has no items.
bool leave_out_done(EngineClient& client, const ManyOptions& many, boost::json::object& task);

/// How a process of the task's end, as the engine tells of it, ends itself.
int exit_code_of(const boost::json::object& task);
/// The highest of a submission's, as sbatch(1), --wait, has it.  Throws CommandError.
int highest_exit_code(EngineClient& client, const std::string& submission);

}  // namespace hpcbatch
