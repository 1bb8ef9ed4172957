// After a login that failed no other is tried for a while: sites lock accounts that knock too
// often.
#pragma once

#include "hpcbatch/result.hpp"

#include <chrono>
#include <optional>
#include <random>

namespace hpcbatch {

/// Pauses from one second to a minute, of what was refused to ten, each about twice the last.
class BackOff {
 public:
  using Clock = std::chrono::steady_clock;

  void failed(const Error& error, Clock::time_point now);
  void succeeded() { failures_ = 0; }
  /// What to say instead of trying.
  std::optional<Error> pause(Clock::time_point now) const;

 private:
  unsigned failures_{0};
  Clock::time_point until_{};
  std::string reason_;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace hpcbatch
