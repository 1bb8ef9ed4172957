// What tasks may choose of the batch jobs that run them, in the words of sbatch(1).
#pragma once

#include <string>
#include <vector>

namespace hpcbatch::slurm {

/// Not: what says how many or which nodes, GPUs and how long (that is the shape's), what hpcbatch
/// says itself (names, files, `--comment`, `--exclude`), and other clusters.
const std::vector<std::string>& choice_keys();
std::vector<std::string> options_for(const std::vector<std::string>& choices);

}  // namespace hpcbatch::slurm
