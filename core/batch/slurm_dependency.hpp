// What sbatch's --dependency says.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::batch {

/// All options of submit that a dependency may become.
inline constexpr std::array<std::string_view, 7> kDependencyOptions{
    "--after",        "--after-any", "--after-each", "--after-start",
    "--after-failed", "--after-one", "--singleton"};

/// Of `afterok:2000000012:2000000013_4,after:2000000014+10` or `afterok:2000000012?singleton`: options
/// of submit.  Throws std::invalid_argument, which says what cannot be waited for.
std::vector<std::string> slurm_dependency(const std::string& text);

}  // namespace hpcbatch::batch
