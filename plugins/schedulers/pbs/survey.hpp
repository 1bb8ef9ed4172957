// What the queues of a PBS offer to one user, and how much of it he may have.
#pragma once

#include "settings.hpp"

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/survey.hpp"

#include <string>

namespace hpcbatch::pbs {

CommandLine survey_queues(const std::string& dialect);
Result<Survey> read_survey(const Settings& settings, const CommandOutput& output);

}  // namespace hpcbatch::pbs
