// What a batch job printed last before it ended without a pilot: most often why.
#pragma once

#include "hpcbatch/scheduler.hpp"

#include <map>
#include <string>
#include <vector>

namespace hpcbatch {

/// One line, by the allocation's name.
using OutputTails = std::map<std::string, std::string>;

/// Those of the names that a list shows as ended, or lacks.
std::vector<std::string> not_living(const std::vector<std::string>& names,
                                    const std::vector<BatchJob>& jobs);

/// Prints the end of `NAME.out` in the directory of each that is there.
CommandLine ask_output_tails(const std::string& directory, const std::vector<std::string>& names);
/// Of each that printed something the last line with anything in it, as plain text of one line and
/// 300 bytes at most.
OutputTails read_output_tails(const std::vector<std::string>& names, const std::string& output);

}  // namespace hpcbatch
