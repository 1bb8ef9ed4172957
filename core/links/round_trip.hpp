// How long it takes to a pilot and back: asked now and then with heartbeat numbers of the engine's
// own, told where it has changed.
#pragma once

#include "model/time.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

namespace hpcbatch {

class RoundTrip {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  /// The number to send now, where it is time to ask; only while there is work, so that an idle
  /// link stays idle.
  std::optional<std::uint64_t> ask(Moment now);
  /// Pilots count theirs from 1.
  static bool is_ours(std::uint64_t number) { return (number & kOurs) != 0; }
  /// What the engine should know anew, if anything.  A single answer that came late is not
  /// believed.
  std::optional<Duration> answered(std::uint64_t number, Moment now);

 private:
  static constexpr std::uint64_t kOurs = std::uint64_t{1} << 63;
  Duration believed() const;

  std::uint64_t asked_{0};
  std::optional<Moment> asked_at_;
  bool is_waiting_{false};
  std::deque<Duration> last_;
  Duration told_{0};
};

}  // namespace hpcbatch
