// The engine's time: the wall clock as it was at the start, carried on by the steady clock.
#pragma once

#include "model/ids.hpp"

#include <chrono>

namespace hpcbatch {

/// Never goes back, whatever is done to the machine's clock meanwhile.
class Clock {
 public:
  Clock()
      : wall_(std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now())),
        steady_(std::chrono::steady_clock::now()) {}
  Time now() const {
    return wall_ + std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - steady_);
  }
  std::chrono::steady_clock::time_point steady(Time at) const { return steady_ + (at - wall_); }

 private:
  Time wall_;
  std::chrono::steady_clock::time_point steady_;
};

}  // namespace hpcbatch
