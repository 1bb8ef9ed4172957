// How the batch jobs of this user are listed, with those that SLURM has already forgotten.
#pragma once

#include "hpcbatch/scheduler.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::slurm {

CommandLine list_jobs(const std::vector<std::string>& names);
Result<std::vector<BatchJob>> read_jobs(const std::string& prefix, const CommandOutput& output);

/// "n[1-2,07],gpu3" as single names; a text that cannot be taken apart stays as it is.
std::vector<std::string> node_names(std::string_view list);

/// "1-02:03:04", "2:03:04", "3:04"; nothing for UNLIMITED, INVALID and the like.
std::optional<std::chrono::seconds> read_duration(std::string_view text);

}  // namespace hpcbatch::slurm
