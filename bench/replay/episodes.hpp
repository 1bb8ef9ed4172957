// A chain of two pilots, again and again over a trace: how long is there none between them, and how
// long two?  The protocol is that of Mirage (SC'23, doi 10.1145/3581784.3607042): an empty cluster,
// two days of the trace to warm up, then a pilot of two days; until it ends a policy says each ten
// minutes whether to submit the next, which is submitted at its end at the latest; the trace goes on
// for five days from the start.
#pragma once

#include "foresight/cluster.hpp"
#include "foresight/look_ahead.hpp"
#include "foresight/replay/fidelity.hpp"

#include <functional>
#include <string>
#include <vector>

namespace hpcbatch::foresight {

enum class Policy : std::uint8_t {
  Reactive,    ///< when the pilot has ended
  Mean,        ///< its end less the mean of the last 100 waits
  Quantile,    ///< less their 95 % quantile
  LookAhead,   ///< all run to their limits
  MonteCarlo,  ///< the 70 % quantile of the drawn starts
  AskAhead     ///< is_time_to_ask
};
inline constexpr std::size_t kPolicies = 6;
std::string name_of(Policy policy);

struct Episodes {
  ClusterModel cluster;       ///< plays
  ClusterModel model;         ///< what a look-ahead takes it for; its nodes from its first entry
  bool knows_order{true};     ///< of those that wait; else it takes the order of submits
  std::size_t hides_each{0};  ///< each so many-th job is not seen; 0: none
  std::int32_t pilot_nodes{1};
  Seconds pilot_time{2 * kDay};
  Seconds from{0}, until{0};  ///< starts of episodes
  Seconds every{4 * kHour};
  Seconds step{10 * kMinute};
  AskingCosts costs;
  Draws draws;
  std::vector<Policy> policies;  ///< Reactive first
};

struct PolicyResult {
  Policy policy{Policy::Reactive};
  /// By episode: hours from the end of the first to the start of the second; below zero both ran.
  std::vector<double> gaps;
  double interruption() const;
  double overlap() const;
  double uninterrupted() const;  ///< part of the episodes
};

/// How good the look-ahead's words were, for each first pilot in the order of the episodes.
struct Bounded {
  bool by_half{false};  ///< it started before the 50 % quantile
  bool by_most{false};  ///< before the 90 %
};

struct EpisodeResults {
  std::vector<PolicyResult> policies;
  std::vector<Bounded> bounds;
};

/// Episodes run side by side on all processors; the results do not depend on how many there are.
/// `done` is told how many of all have ended, from any thread; where it says false the rest is left.
EpisodeResults play_episodes(const Trace& trace, const Episodes& episodes,
                             const std::function<bool(std::size_t, std::size_t)>& done);

}  // namespace hpcbatch::foresight
