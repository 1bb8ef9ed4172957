#include "foresight/wait_history.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hpcbatch::foresight {
namespace {

constexpr std::size_t kFewestWaits = 10;
constexpr std::size_t kMostWaits = 300;
/// So many in a row are a change.
constexpr std::size_t kInARow = 3;
constexpr double kNineInTen = 0.9, kOneInTen = 0.1;

/// The k-th of those in order, k = q (n + 1).
Seconds order_statistic(const std::vector<Seconds>& sorted, double q) {
  const auto k =
      static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size() + 1) - 1e-9));
  return sorted[std::clamp<std::size_t>(k, 1, sorted.size()) - 1];
}

double log_of(Seconds wait) {
  return std::log10(static_cast<double>(wait) + 1);
}

}  // namespace

std::optional<WaitBound> WaitHistory::bound_of(Seconds waited) const {
  std::vector<Seconds> longer;
  longer.reserve(waits_.size());
  for (const Seconds wait : waits_) {
    if (wait > waited || waited == 0) longer.push_back(wait);
  }
  if (longer.size() < kFewestWaits) return std::nullopt;
  std::sort(longer.begin(), longer.end());
  return WaitBound{order_statistic(longer, 0.5), order_statistic(longer, kNineInTen),
                   longer.size()};
}

std::optional<WaitBound> WaitHistory::bound(Seconds waited) const {
  if (!is_trusted()) return std::nullopt;
  return bound_of(waited);
}

std::vector<Seconds> WaitHistory::told() const {
  if (!bound()) return {};
  std::vector<Seconds> sorted(waits_.begin(), waits_.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

void WaitScore::add(std::optional<Seconds> half, Seconds most, Seconds wait) {
  const auto mean = [](double& value, double next, std::size_t of) {
    value += (next - value) / static_cast<double>(of);
  };
  mean(by_most, wait <= most ? 1 : 0, ++count);
  if (!half) return;
  ++halves;
  const double off = std::abs(log_of(*half) - log_of(wait));
  mean(by_half, wait <= *half ? 1 : 0, halves);
  mean(mean_square, off * off, halves);
  mean(within_2, off <= std::log10(2.0) + 1e-12 ? 1 : 0, halves);
  mean(within_3, off <= std::log10(3.0) + 1e-12 ? 1 : 0, halves);
}

void WaitHistory::judge(const WaitBound& told, Seconds wait) {
  coverage_.add(wait <= told.most);
  score_.add(told.half, told.most, wait);
}

void WaitHistory::note_change(Seconds wait) {
  std::vector<Seconds> sorted(waits_.begin(), waits_.end());
  std::sort(sorted.begin(), sorted.end());
  above_ = wait > order_statistic(sorted, kNineInTen) ? above_ + 1 : 0;
  below_ = wait < order_statistic(sorted, kOneInTen) ? below_ + 1 : 0;
}

void WaitHistory::add(Seconds wait) {
  wait = std::max<Seconds>(wait, 0);
  if (const auto told = bound_of(0)) {
    judge(*told, wait);
    note_change(wait);
  }
  waits_.push_back(wait);
  if (waits_.size() > kMostWaits) waits_.pop_front();
  if (above_ < kInARow && below_ < kInARow) return;
  above_ = below_ = 0;
  while (waits_.size() > kFewestWaits) waits_.pop_front();
}

}  // namespace hpcbatch::foresight
