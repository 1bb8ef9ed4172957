// Starts another program by posix_spawn(3).
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace hpcbatch {

struct SpawnOptions {
  const std::vector<std::string>* environment{nullptr};  ///< lines NAME=value; null: ours
  int input{-1};                                         ///< -1: /dev/null
  int output{-1};                                        ///< -1: ours
  int error{-1};                                         ///< -1: ours
  bool own_group{false};
  bool unblocks_signals{true};
};

/// `argv` begins with the program, which is looked for on our PATH where it has no slash.  0, or
/// what errno says: then `pid` is -1.
int spawn_program(const std::vector<std::string>& argv, const SpawnOptions& options, pid_t& pid);

}  // namespace hpcbatch
