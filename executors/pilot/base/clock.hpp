// The clock of what a pilot does; what it decides is told the time.
#pragma once

#include "pilot/base/time.hpp"

namespace hpcbatch::pilot {

inline Time clock_now() {
  return std::chrono::steady_clock::now();
}

}  // namespace hpcbatch::pilot
