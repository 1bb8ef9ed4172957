// What came of starting a process.
#pragma once

#include <sys/types.h>

namespace hpcbatch::pilot {

struct Spawned {
  enum class Step { None, Start, ControlGroup, Directory, Program };
  pid_t pid{-1};  // -1: nothing was started
  Step failed_at{Step::None};
  int error{0};  // errno of that
};

}  // namespace hpcbatch::pilot
