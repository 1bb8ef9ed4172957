// The words for how tasks stand and end, as the command line takes them.
#pragma once

#include <string>

namespace hpcbatch {

// Each returns the word as it came, or throws std::invalid_argument with one sentence that proposes
// what was meant, also where it is the word of another program.

/// `waiting`, `done`, ...
const std::string& checked_state(const std::string& text);
/// `tool_failed`, `oom_task`, ...
const std::string& checked_failure(const std::string& text);

}  // namespace hpcbatch
