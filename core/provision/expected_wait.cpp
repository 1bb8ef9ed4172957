#include "provision/expected_wait.hpp"

#include <algorithm>
#include <numeric>

namespace hpcbatch::provision {
namespace {

using namespace std::chrono_literals;

constexpr Duration kForgottenAfter = 24h;
// The part that the latest wait has of the mean.
constexpr std::uint32_t kWeightOfLatest = 3;
// Polls tell of a start only so exactly.
constexpr Duration kSmallDifference = 30s;

bool is_forgotten(const KnownWaits& known, Time now) {
  return known.count == 0 || now - known.latest > kForgottenAfter;
}

/// Whether one that waits for `wait` starts about when one does that waits for the shorter `least`.
bool is_about_as_short(Duration wait, Duration least) {
  return wait - least <= std::max(kSmallDifference, least / 4);
}

}  // namespace

void learn_wait(KnownWaits& known, Duration wait, Time now) {
  if (is_forgotten(known, now)) known = {};
  ++known.count;
  const auto weight = static_cast<std::int64_t>(std::min(known.count, kWeightOfLatest));
  known.mean += (std::max(Duration{}, wait) - known.mean) / weight;
  known.latest = now;
}

std::optional<Duration> expected_wait(const KnownWaits& known, std::optional<Duration> queued_for,
                                      Time now) {
  if (is_forgotten(known, now)) return queued_for;
  return std::max(known.mean, queued_for.value_or(Duration{}));
}

std::vector<std::size_t> start_places(const std::vector<Duration>& waits) {
  std::vector<std::size_t> by_wait(waits.size());
  std::iota(by_wait.begin(), by_wait.end(), std::size_t{0});
  std::stable_sort(by_wait.begin(), by_wait.end(),
                   [&](std::size_t a, std::size_t b) { return waits[a] < waits[b]; });
  std::vector<std::size_t> places(waits.size());
  std::size_t place = 0;
  std::optional<Duration> least;
  for (const std::size_t at : by_wait) {
    if (least && !is_about_as_short(waits[at], *least)) {
      ++place;
      least = waits[at];
    }
    if (!least) least = waits[at];
    places[at] = place;
  }
  return places;
}

}  // namespace hpcbatch::provision
