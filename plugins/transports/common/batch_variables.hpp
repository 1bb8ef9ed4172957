// The variables by which the clients of batch systems find their system.
#pragma once

#include <array>

namespace hpcbatch {

inline constexpr std::array kBatchVariables{
    "SLURM_CONF", "PBS_CONF_FILE",    "PBS_EXEC",   "PBS_SERVER", "PBS_DEFAULT", "SGE_ROOT",
    "SGE_CELL",   "SGE_CLUSTER_NAME", "LSF_ENVDIR", "LSF_BINDIR", "LSF_LIBDIR",  "LSF_SERVERDIR"};

}  // namespace hpcbatch
