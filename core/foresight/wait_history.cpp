#include "foresight/wait_history.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hpcbatch::foresight {
namespace {

constexpr std::size_t kMostOfAll = 512;
constexpr std::array<std::size_t, 5> kMost{16, 24, 32, 64, kMostOfAll};
/// So many that may still apply are enough to draw from.
constexpr std::size_t kEnough = 3;

std::uint64_t class_of(Seconds limit) {
  if (limit <= 4 * kHour) return 0;
  return limit <= kDay ? 1 : 2;
}

std::uint64_t mix(std::uint64_t one, std::uint64_t other) {
  return (one ^ (other + 0x9e3779b97f4a7c15ULL + (one << 6) + (one >> 2))) * 0xff51afd7ed558ccdULL;
}

std::array<std::uint64_t, kMost.size()> keys_of(const Job& job) {
  const auto user = static_cast<std::uint64_t>(job.user) + 1;
  const std::uint64_t of_limit = mix(user, static_cast<std::uint64_t>(job.limit));
  const std::uint64_t of_nodes = mix(of_limit, static_cast<std::uint64_t>(job.nodes));
  return {mix(of_nodes, job.name), of_nodes, of_limit, mix(user, class_of(job.limit) + 1),
          class_of(job.limit)};
}

/// Of somebody unknown only the last says anything.
std::size_t first_key(const Job& job) {
  return job.user < 0 ? kMost.size() - 1 : 0;
}

constexpr double kTooRare = 0.01;

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

void RunTimes::Ring::add(float part, std::size_t most) {
  if (parts.size() < most) {
    parts.push_back(part);
    return;
  }
  parts[next] = part;
  next = (next + 1) % most;
}

void RunTimes::learn(const Job& job) {
  if (job.limit <= 0) return;
  const auto part = static_cast<float>(
      std::clamp(static_cast<double>(job.runs) / static_cast<double>(job.limit), 0.0, 1.0));
  const auto keys = keys_of(job);
  for (std::size_t i = first_key(job); i < keys.size(); ++i) rings_[i][keys[i]].add(part, kMost[i]);
}

Seconds RunTimes::at(const Job& job, Seconds elapsed, double place) const {
  if (elapsed >= job.limit) return elapsed + 1;
  const auto keys = keys_of(job);
  const double so_far = static_cast<double>(elapsed) / static_cast<double>(job.limit);
  std::array<float, kMostOfAll> left;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (std::size_t i = first_key(job); i < keys.size(); ++i) {
    const auto ring = rings_[i].find(keys[i]);
    if (ring == rings_[i].end()) continue;
    std::size_t count = 0;
    for (const float part : ring->second.parts) {
      if (part > so_far || elapsed == 0) left[count++] = part;
    }
    if (count < kEnough) continue;
    const auto which =
        left.begin() + static_cast<std::ptrdiff_t>(place * static_cast<double>(count));
    std::nth_element(left.begin(), which, left.begin() + static_cast<std::ptrdiff_t>(count));
    const auto runs = static_cast<Seconds>(*which * static_cast<double>(job.limit));
    return elapsed == 0 ? std::min(runs, job.limit) : std::clamp(runs, elapsed + 1, job.limit);
  }
  return elapsed + 1 + static_cast<Seconds>(place * static_cast<double>(job.limit - elapsed));
}

double RunTimeDraw::place() {
  // Below 1 also where it is rounded.
  return std::min(std::uniform_real_distribution<double>(0, 1)(random_), 0.999999);
}

Seconds RunTimeDraw::operator()(const Job& job, Seconds elapsed) {
  if (!times_) return std::max(job.limit, elapsed + 1);
  if (job.user < 0 || place() >= alike_) return times_->at(job, elapsed, place());
  const auto [at, is_new] = places_.try_emplace(job.user, 0);
  if (is_new) at->second = place();
  return times_->at(job, elapsed, at->second);
}

double binomial_at_most(std::size_t k, std::size_t n, double p) {
  if (k >= n) return 1;
  double sum = 0;
  for (std::size_t i = 0; i <= k; ++i) {
    const auto x = static_cast<double>(i), all = static_cast<double>(n);
    sum += std::exp(std::lgamma(all + 1) - std::lgamma(x + 1) - std::lgamma(all - x + 1) +
                    x * std::log(p) + (all - x) * std::log1p(-p));
  }
  return std::min(sum, 1.0);
}

void Coverage::add(bool held) {
  held_.push_back(held);
  if (held_.size() > window_) held_.pop_front();
}

bool Coverage::is_right() const {
  const auto good = static_cast<std::size_t>(std::count(held_.begin(), held_.end(), true));
  return binomial_at_most(good, held_.size(), nominal_) >= kTooRare;
}

double Coverage::value() const {
  if (held_.empty()) return 1;
  return static_cast<double>(std::count(held_.begin(), held_.end(), true)) /
         static_cast<double>(held_.size());
}

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
