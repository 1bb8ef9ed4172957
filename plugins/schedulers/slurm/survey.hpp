// What the partitions of a cluster offer, kind of node by kind of node, and what one user may have.
#pragma once

#include "hpcbatch/survey.hpp"

namespace hpcbatch::slurm {

CommandLine survey_partitions();
Result<Survey> read_survey(const CommandOutput& output);

}  // namespace hpcbatch::slurm
