// How long the next will wait, from how long those before it did, with a bound that can be checked.
//
// The n + 1st of waits that are alike is no longer than the k-th of the n before it with probability
// k/(n + 1), whatever their distribution (a prediction interval of order statistics, as in QBETS of
// Brevik, Nurmi and Wolski).  Where waits change, what was before is forgotten: three in a row above
// what nine in ten should stay below, or below what one in ten should, are no chance.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <unordered_map>
#include <vector>

namespace hpcbatch::foresight {

// A job of a batch system, as far as its wait depends on it.

/// Since any moment that all share.
using Seconds = std::int64_t;
inline constexpr Seconds kMinute = 60, kHour = 3600, kDay = 86'400;

struct Job {
  Seconds submitted{0};
  Seconds limit{0};
  Seconds runs{0};                     ///< cut at the limit; 0: cancelled while it waited
  std::int32_t nodes{1};               ///< or processors, where a cluster is shared by these
  double priority{0};                  ///< beside what the cluster gives for age and size
  std::int32_t user{-1};               ///< -1: nobody known, and no bound
  std::uint32_t name{0};               ///< alike for jobs whose names differ in digits alone
  std::optional<std::uint32_t> after;  ///< may not start before that one, submitted before, ended
};

// How long jobs run, as a part of what they ask for: what those before them did, the most alike
// first (same user, limit, nodes and name; without the name; and so on to all of its length).

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

// Whether the bounds that were told have held.

/// Of the last so many bounds: they are right for as long as so few that held would not be rarer
/// than one in a hundred, were each to hold with probability `nominal` (a binomial test).
class Coverage {
 public:
  explicit Coverage(double nominal, std::size_t window = 60) : nominal_(nominal), window_(window) {}
  void add(bool held);
  bool is_right() const;
  std::size_t count() const { return held_.size(); }
  /// Part of them that held; 1 of none.
  double value() const;

 private:
  double nominal_;
  std::size_t window_;
  std::deque<bool> held_;
};

/// P(X <= k) of n trials with probability p each.
double binomial_at_most(std::size_t k, std::size_t n, double p);

/// Of a whole wait, from the submit on.
struct WaitBound {
  Seconds half{0};      ///< as probable to be longer as not
  Seconds most{0};      ///< nine in ten are no longer
  std::size_t from{0};  ///< waits that say so
};

/// How good the bounds were that stood before each wait was known.
struct WaitScore {
  std::size_t count{0};
  std::size_t halves{0};          ///< of these, which said more than the latest
  double by_half{0}, by_most{0};  ///< part that waited no longer
  /// Of the logarithms (to 10, of seconds plus 1) of the halves and of the waits.
  double mean_square{0};
  double within_2{0}, within_3{0};  ///< part whose half was off by no more than that factor

  /// One that had been told `half`, where anybody could say that, and `most`.
  void add(std::optional<Seconds> half, Seconds most, Seconds wait);
};

class WaitHistory {
 public:
  /// One that is over; in the order of their ends.
  void add(Seconds wait);
  /// For one that has waited so long already, of those that waited longer.  Nothing of fewer than
  /// ten, nor while the bounds have not held.
  std::optional<WaitBound> bound(Seconds waited = 0) const;
  /// What a bound is told from, in order; empty where none is.
  std::vector<Seconds> told() const;
  const WaitScore& score() const { return score_; }
  /// Whether the bounds that were told have held.
  bool is_trusted() const { return coverage_.is_right(); }
  std::size_t count() const { return waits_.size(); }

 private:
  std::optional<WaitBound> bound_of(Seconds waited) const;
  void judge(const WaitBound& told, Seconds wait);
  void note_change(Seconds wait);

  std::deque<Seconds> waits_;        ///< since the last change, the newest last
  std::size_t above_{0}, below_{0};  ///< in a row
  Coverage coverage_{0.9};
  WaitScore score_;
};

}  // namespace hpcbatch::foresight
