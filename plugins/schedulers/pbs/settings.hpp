// What an administrator may say about a PBS.
//
//   dialect: openpbs              # else the commands themselves are asked
//   place: scatter:excl           # what qsub gets as `-l place=`
//   gpu_kinds:                    # how a kind of GPU is asked for, beside its number
//     a100: gpu_model=A100        # (Torque: the property of the nodes that have it)
#pragma once

#include <map>
#include <string>

namespace hpcbatch::pbs {

struct Settings {
  std::string dialect;  ///< empty: to be asked
  std::string place;    ///< empty: a node of its own for each pilot, and nothing else
  std::map<std::string, std::string> gpu_kinds;
};

/// Throws what is wrong and in which line.
Settings read_settings(const char* config_yaml);

}  // namespace hpcbatch::pbs
