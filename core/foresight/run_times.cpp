#include "foresight/run_times.hpp"

#include <algorithm>

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

}  // namespace hpcbatch::foresight
