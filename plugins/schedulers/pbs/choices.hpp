// What tasks may choose of the batch jobs that run them, in words that every qsub has (qsub(1B) of
// OpenPBS, Torque and SLURM): the account alone.
#pragma once

#include <string>
#include <vector>

namespace hpcbatch::pbs {

const std::vector<std::string>& choice_keys();
std::vector<std::string> options_for(const std::vector<std::string>& choices);

}  // namespace hpcbatch::pbs
