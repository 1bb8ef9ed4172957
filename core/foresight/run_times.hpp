// How long jobs run, as a part of what they ask for: what those before them did, the most alike
// first (same user, limit, nodes and name; without the name; and so on to all of its length).
#pragma once

#include "foresight/job.hpp"

#include <array>
#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

namespace hpcbatch::foresight {

class RunTimes {
 public:
  /// One that has ended.
  void learn(const Job& job);
  /// For one that has run for `elapsed` already: more than that, and no more than its limit; of
  /// what may still come, that at this place (0 to 1).
  Seconds at(const Job& job, Seconds elapsed, double place) const;

 private:
  static constexpr std::size_t kLevels = 5;
  /// The newest, over the oldest.
  struct Ring {
    std::vector<float> parts;
    std::size_t next{0};
    void add(float part, std::size_t most);
  };

  std::array<std::unordered_map<std::uint64_t, Ring>, kLevels> rings_;  ///< the most alike first
};

/// One of the ways in which it may come.  Jobs of a user mostly fare alike: those that all fail at
/// once, or all run to their limit, are what makes the end of a queue uncertain.
class RunTimeDraw {
 public:
  /// `alike`: how probable it is that a job fares as the others of its user do in this draw.
  /// Without `times` all run to their limit.
  RunTimeDraw(const RunTimes* times, double alike, std::uint32_t seed)
      : times_(times), alike_(alike), random_(seed) {}
  Seconds operator()(const Job& job, Seconds elapsed);

 private:
  double place();

  const RunTimes* times_;
  double alike_;
  std::mt19937 random_;
  std::unordered_map<std::int32_t, double> places_;  ///< by user
};

}  // namespace hpcbatch::foresight
