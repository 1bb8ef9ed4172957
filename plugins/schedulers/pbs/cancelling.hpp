// How batch jobs are deleted by name.
#pragma once

#include "hpcbatch/command_line.hpp"

#include <string>
#include <vector>

namespace hpcbatch::pbs {

CommandLine delete_jobs(const std::string& dialect, const std::vector<std::string>& names);

}  // namespace hpcbatch::pbs
