// What is handed to qsub, the batch script of it with one pilot on each node, and what it answers.
#pragma once

#include "dialect.hpp"
#include "hpcbatch/scheduler.hpp"

#include <string>
#include <variant>

namespace hpcbatch::pbs {

CommandLine qsub(const Settings& settings, const AllocationRequest& request,
                 const std::string& script_path);

std::string batch_script(const AllocationRequest& request);

/// A number alone is success. A refusal counts as one only where nothing can have been accepted.
std::variant<std::string, SubmitRefused> read_qsub(const CommandOutput& output);

}  // namespace hpcbatch::pbs
