// What the partitions of a cluster offer.
#pragma once

#include "hpcbatch/scheduler.hpp"

#include <vector>

namespace hpcbatch::slurm {

CommandLine list_partitions();
Result<std::vector<Offer>> read_partitions(const CommandOutput& output);

}  // namespace hpcbatch::slurm
