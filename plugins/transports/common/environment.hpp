// Variables for commands: those by which clients of batch systems find their system, and those
// of a site's configuration.
#pragma once

#include "hpcbatch/keys.hpp"
#include "process.hpp"

#include <array>
#include <string_view>

namespace hpcbatch {

// The variables by which the clients of batch systems find their system.

inline constexpr std::array kBatchVariables{
    "SLURM_CONF", "PBS_CONF_FILE",    "PBS_EXEC",   "PBS_SERVER", "PBS_DEFAULT", "SGE_ROOT",
    "SGE_CELL",   "SGE_CLUSTER_NAME", "LSF_ENVDIR", "LSF_BINDIR", "LSF_LIBDIR",  "LSF_SERVERDIR"};

// Variables that a site's configuration gives to every command there.

bool is_variable_name(std::string_view name);

/// Of the key `environment`; throws as Keys does.
Environment read_environment(const Keys& keys);

}  // namespace hpcbatch
