#include "records/sketch.hpp"

#include <algorithm>
#include <cmath>

namespace hpcbatch::records {
namespace {

constexpr double kWidth = 1.1;
const double kRangesPerDoubling = 1 / std::log2(kWidth);
// Farther from 1 nothing is measured.
constexpr int kFarthest = 1000;

int range_of(double value) {
  const double range = std::ceil(std::log2(value) * kRangesPerDoubling);
  return static_cast<int>(std::clamp<double>(range, -kFarthest, kFarthest));
}

/// As far from the lower end of the range as from the upper one, by their ratios.
double middle_of(int range) {
  return 2 * std::pow(kWidth, range) / (1 + kWidth);
}

}  // namespace

Sketch Sketch::of(double zeros, int lowest, std::vector<float> counts) {
  Sketch sketch;
  sketch.zeros_ = zeros;
  sketch.lowest_ = lowest;
  sketch.counts_ = std::move(counts);
  sketch.count_ = zeros;
  for (const float count : sketch.counts_) sketch.count_ += static_cast<double>(count);
  return sketch;
}

float& Sketch::at(int range) {
  if (counts_.empty()) lowest_ = range;
  if (range < lowest_) {
    const auto more = static_cast<std::size_t>(lowest_ - range);
    if (counts_.size() + more > kMostRanges) return counts_.front();
    counts_.insert(counts_.begin(), more, 0.0F);
    lowest_ = range;
  }
  auto place = static_cast<std::size_t>(range - lowest_);
  if (place >= counts_.size()) counts_.resize(place + 1, 0.0F);
  if (counts_.size() > kMostRanges) {
    const std::size_t gone = counts_.size() - kMostRanges;
    float together = 0;
    for (std::size_t i = 0; i <= gone; ++i) together += counts_[i];
    counts_.erase(counts_.begin(), counts_.begin() + static_cast<std::ptrdiff_t>(gone));
    counts_.front() = together;
    lowest_ += static_cast<int>(gone);
    place -= gone;
  }
  return counts_[place];
}

void Sketch::add(double value, double count) {
  if (std::isnan(value) || !(count > 0)) return;
  count_ += count;
  if (value <= 0)
    zeros_ += count;
  else
    at(range_of(value)) += static_cast<float>(count);
}

void Sketch::add(const Sketch& other) {
  for (std::size_t i = 0; i < other.counts_.size(); ++i) {
    if (other.counts_[i] > 0) at(other.lowest_ + static_cast<int>(i)) += other.counts_[i];
  }
  zeros_ += other.zeros_;
  count_ += other.count_;
}

void Sketch::scale(double factor) {
  zeros_ *= factor;
  count_ *= factor;
  for (float& count : counts_) count *= static_cast<float>(factor);
}

double Sketch::quantile(double share) const {
  // Sums of fractions may come out a little below what they make together.
  double left = std::clamp(share, 0.0, 1.0) * count_ * (1 - 1e-6) - zeros_;
  if (count_ <= 0 || left <= 0) return 0;
  int range = lowest_;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] <= 0) continue;
    range = lowest_ + static_cast<int>(i);
    left -= static_cast<double>(counts_[i]);
    if (left <= 0) break;
  }
  return middle_of(range);
}

}  // namespace hpcbatch::records
