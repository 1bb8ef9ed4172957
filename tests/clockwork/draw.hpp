// Random draws that depend on a seed and on what they are for, and on nothing else: what is left
// out of a scenario does not change what is drawn for the rest of it.
#pragma once

#include "model/ids.hpp"

#include <cstdint>
#include <initializer_list>

namespace hpcbatch::clockwork {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(mix(seed)) {}

  /// A sequence of its own for each purpose.
  Draw of(std::initializer_list<std::uint64_t> purpose) const {
    Draw other(state_);
    for (const std::uint64_t part : purpose) other.state_ = mix(other.state_ ^ part);
    return other;
  }
  std::uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15U); }
  std::uint64_t below(std::uint64_t end) { return next() % end; }
  bool chance(std::uint64_t percent) { return below(100) < percent; }
  Duration between(Duration least, Duration most) {
    return least + Duration{static_cast<std::int64_t>(
                       below(static_cast<std::uint64_t>((most - least).count()) + 1))};
  }

 private:
  // splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

}  // namespace hpcbatch::clockwork
