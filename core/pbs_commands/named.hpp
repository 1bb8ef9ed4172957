// Which jobs the words of a command mean: ours, those of the cluster, queues and servers.
#pragma once

#include "pbs_commands/pbs_job.hpp"
#include "slurm_commands/engine_jobs.hpp"

#include <string>
#include <vector>

namespace hpcbatch::pbs_commands {

struct Named {
  std::vector<PbsName> ours;
  std::vector<std::string> real;    ///< jobs of the cluster
  std::vector<std::string> queues;  ///< `@SERVER` alone is none
};
Named named_by(const std::vector<std::string>& words);

/// All that may be meant, each array with all of its tasks.
std::vector<slurm_commands::Job> jobs_meant(slurm_commands::EngineJobs& engine,
                                            const std::vector<PbsName>& names);

/// The real command with the words less those that name jobs of ours; its exit code.  Where there is
/// none each such job is unknown.
int call_real(const slurm_commands::Call& call, const Named& named);

/// `qdel: Unknown Job Id 4711.hpcbatch`, on standard error.
int complain_of_unknown(const std::string& command, const std::string& text);

}  // namespace hpcbatch::pbs_commands
