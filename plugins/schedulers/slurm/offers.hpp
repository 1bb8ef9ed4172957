// What the partitions of a cluster offer.
#pragma once

#include "hpcbatch/scheduler.hpp"

#include <vector>

namespace hpcbatch::slurm {

CommandLine list_partitions();
Result<std::vector<Offer>> read_partitions(const CommandOutput& output);

/// The number at the beginning; sinfo writes "4+" for "4 and more".
unsigned long leading_number(const std::string& text);
/// "gpu:a100:2(S:0-1),gpu:1,other:4": the gpus by kind.
void add_gpus(const std::string& gres, std::map<std::string, std::uint32_t>& gpus);

}  // namespace hpcbatch::slurm
