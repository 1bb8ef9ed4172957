// The spread of many values in little room: how many there were in each of many narrow ranges, of
// which each is a tenth wider than the one below it (as DDSketch, VLDB 2019).
//
// A quantile is off by 5 % of its value at most.  Two are added up exactly, and counts may be
// fractions: what is old counts less.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hpcbatch::records {

class Sketch {
 public:
  /// What is not above 0 counts as 0; what is no number does not count.
  void add(double value, double count = 1);
  void add(const Sketch& other);
  /// Everything counts that much: 0.5 is half.
  void scale(double factor);

  /// Of how many values.
  double count() const { return count_; }
  /// The value that this share of them does not exceed, from 0 to 1; 0 where there is none.
  double quantile(double share) const;

  // How it is kept.  Ranges are numbered, and of those below 0 are values below 1.
  double zeros() const { return zeros_; }
  int lowest() const { return lowest_; }
  /// Of the lowest range and those above it.
  const std::vector<float>& counts() const { return counts_; }
  static Sketch of(double zeros, int lowest, std::vector<float> counts);

 private:
  /// More than these would be values that differ by a factor of 10^21; the lowest are put together.
  static constexpr std::size_t kMostRanges = 512;
  float& at(int range);

  double count_{0};
  double zeros_{0};
  int lowest_{0};
  std::vector<float> counts_;
};

}  // namespace hpcbatch::records
