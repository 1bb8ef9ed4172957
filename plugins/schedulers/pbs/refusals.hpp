// What qsub's answer means.
#pragma once

#include "hpcbatch/scheduler.hpp"

#include <string>
#include <variant>

namespace hpcbatch::pbs {

/// A number alone is success. A refusal counts as one only where nothing can have been accepted.
std::variant<std::string, SubmitRefused> read_qsub(const CommandOutput& output);

}  // namespace hpcbatch::pbs
