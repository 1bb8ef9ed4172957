// How the batch jobs of this user are listed, with those that have ended.
#pragma once

#include "hpcbatch/scheduler.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pbs {

CommandLine list_jobs(const std::string& dialect, const std::vector<std::string>& names);
Result<std::vector<BatchJob>> read_jobs(const std::string& prefix, const CommandOutput& output);

/// "n1/0*4+n1/1+n2/0" as single names.
std::vector<std::string> node_names(std::string_view exec_host);

}  // namespace hpcbatch::pbs
