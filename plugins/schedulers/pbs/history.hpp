// What a server keeps of everybody's batch jobs that have ended (job_history_enable of OpenPBS), and
// of those that have not.
#pragma once

#include "hpcbatch/queue_history.hpp"

namespace hpcbatch::pbs {

CommandLine list_past(const std::string& dialect, std::chrono::seconds from,
                      std::chrono::seconds until);
Result<PastJobs> read_past(const CommandOutput& output);

}  // namespace hpcbatch::pbs
