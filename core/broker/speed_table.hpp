// How long tasks of a kind take on each device that they may have: one kind of GPU, or cpus alone.
//
// Where a kind has not run on a device yet, it is taken to be to others there as the kinds are that
// ran on both (the median of their ratios): Jayaram Subramanya et al., "Sia", SOSP 2023, do the
// same for what they have not profiled.
#pragma once

#include "model/ids.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::broker {

/// Runs that ended well, by the logarithms of their seconds; the latest count most.
struct Runs {
  double mean{0};
  double variance{0};
  double count{0};
  friend bool operator==(const Runs&, const Runs&) = default;
};
void learn(Runs& runs, Duration run);
/// Both together, each by its count.
Runs put_together(const Runs& a, const Runs& b);

class SpeedTable {
 public:
  /// What is known of a kind of task beyond so many is not kept.
  static constexpr std::size_t kMostKinds = 1000;

  void learn(const std::string& kind, const std::string& device, Duration run);
  void add(const std::string& kind, const std::string& device, const Runs& runs);
  /// Nothing where it never ran there.
  const Runs* find(std::string_view kind, std::string_view device) const;
  /// Seconds that a task of the kind is expected to take there: measured, or filled in; nothing
  /// where the kind has run nowhere.
  std::optional<double> seconds(std::string_view kind, std::string_view device) const;
  /// As `seconds`, but for the better by one standard error where it was measured.  Whoever chooses
  /// by it does not keep a kind off a device for good because one of its first runs there was slow
  /// by chance: optimism in the face of uncertainty (Auer, Cesa-Bianchi, Fischer, "Finite-time
  /// analysis of the multiarmed bandit problem", 2002).
  std::optional<double> hoped_seconds(std::string_view kind, std::string_view device) const;

  using ByDevice = std::map<std::string, Runs, std::less<>>;
  const std::map<std::string, ByDevice, std::less<>>& kinds() const { return kinds_; }

 private:
  std::optional<double> ratio(std::string_view from, std::string_view to) const;

  std::map<std::string, ByDevice, std::less<>> kinds_;
};

}  // namespace hpcbatch::broker
