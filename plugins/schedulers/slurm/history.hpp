// What accounting keeps of everybody's batch jobs.
#pragma once

#include "hpcbatch/queue_history.hpp"

namespace hpcbatch::slurm {

CommandLine list_past(std::chrono::seconds from, std::chrono::seconds until);
Result<PastJobs> read_past(const CommandOutput& output);

}  // namespace hpcbatch::slurm
