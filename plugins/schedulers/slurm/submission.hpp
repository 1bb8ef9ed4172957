// What is handed to sbatch, and what its answer means.
#pragma once

#include "hpcbatch/scheduler.hpp"

#include <string>
#include <variant>
#include <vector>

namespace hpcbatch::slurm {

std::string batch_script(const AllocationRequest& request);
/// The option of sbatch that keeps a batch job from these nodes (sbatch(1), --exclude); none where
/// there is no name of one.
std::vector<std::string> exclusion(const std::vector<std::string>& nodes);
CommandLine sbatch(const AllocationRequest& request, const std::string& script_path);

/// The number alone is success.  A refusal counts as one only where nothing can have been accepted:
/// a lost answer means a batch job as often as not (measured: it was there after "Socket timed
/// out").
std::variant<std::string, SubmitRefused> read_sbatch(const CommandOutput& output);

/// `sbatch --test-only`: the controller looks at account, QOS, partition, limits and options, and
/// says when it would start.
CommandLine sbatch_test(const AllocationRequest& request, const std::string& script_path);
Result<std::string> read_sbatch_test(const CommandOutput& output);

/// SLURM's words without "sbatch: error:" before each line.
std::string one_line(const std::string& text);

}  // namespace hpcbatch::slurm
