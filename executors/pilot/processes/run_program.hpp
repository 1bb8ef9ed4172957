// Runs a program to its end, for those who may wait: processes beside the pilot's loop.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::pilot {

/// Its exit code, -1 where it had none, and the end of what it printed on both streams.  The
/// environment is lines NAME=value.  `each_second` is called while it runs.
std::pair<int, std::string> run_program(const std::vector<std::string>& argv,
                                        const std::vector<std::string>& environment,
                                        const std::function<void()>& each_second = {});

}  // namespace hpcbatch::pilot
