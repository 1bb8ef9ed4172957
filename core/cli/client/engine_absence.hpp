// How long a verb that waits goes on while the engine is away: one that is restarted, or that dies
// and is started again and again, is waited for.
#pragma once

#include <chrono>

namespace hpcbatch {

class EngineAbsence {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kPatience{10};
  /// A restart is shorter, and nobody need hear of it.
  static constexpr std::chrono::seconds kQuiet{5};

  explicit EngineAbsence(Clock::time_point now) : seen_(now) {}

  /// It answered, or took a connection.
  void seen(Clock::time_point now) {
    seen_ = now;
    told_ = false;
  }
  bool is_too_long(Clock::time_point now) const { return now - seen_ >= kPatience; }
  /// True once for each time that it is away.
  bool is_to_be_told(Clock::time_point now) {
    if (told_ || now - seen_ < kQuiet) return false;
    return told_ = true;
  }

 private:
  Clock::time_point seen_;
  bool told_{false};
};

/// What is said then, on the standard error.
constexpr const char* kAwayText =
    "hpcbatch: the engine is away; it is waited for, ten minutes at most\n";
/// An engine that has too much to do says so with this status, and may do it later.
constexpr int kBusyStatus = 503;

}  // namespace hpcbatch
