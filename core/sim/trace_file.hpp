// A trace from a file, packed by gzip or not.
#pragma once

#include "foresight/replay/trace.hpp"

#include <string>

namespace hpcbatch::sim {

/// `-`: standard input.  Throws std::invalid_argument with one sentence that names the file.
foresight::Trace read_trace_file(const std::string& file, const std::string& partition);

}  // namespace hpcbatch::sim
