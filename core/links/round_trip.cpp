#include "links/round_trip.hpp"

#include <algorithm>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr auto kUntilSure = 1s;
constexpr auto kEvery = 10s;
// An answer may be lost in a later number, and one by files takes its time.
constexpr auto kWaitsForAnswer = 60s;
constexpr std::size_t kAnswers = 3;
// Less of a change is not worth an event: the backlog covers it.
constexpr Duration kSmall = 10ms;

}  // namespace

std::optional<std::uint64_t> RoundTrip::ask(Moment now) {
  if (asked_at_) {
    const auto pause = is_waiting_               ? kWaitsForAnswer
                       : last_.size() < kAnswers ? kUntilSure
                                                 : kEvery;
    if (now - *asked_at_ < pause) return std::nullopt;
  }
  asked_at_ = now;
  is_waiting_ = true;
  return kOurs | ++asked_;
}

std::optional<Duration> RoundTrip::answered(std::uint64_t number, Moment now) {
  if (!is_waiting_ || number != (kOurs | asked_)) return std::nullopt;
  is_waiting_ = false;
  last_.push_back(std::chrono::duration_cast<Duration>(now - *asked_at_));
  if (last_.size() > kAnswers) last_.pop_front();
  const Duration trip = believed();
  const Duration change = trip > told_ ? trip - told_ : told_ - trip;
  if (change <= std::max(kSmall, told_ / 4)) return std::nullopt;
  told_ = trip;
  return trip;
}

/// The middle one of three, the smaller one of two.
Duration RoundTrip::believed() const {
  std::deque<Duration> sorted = last_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() - 1) / 2];
}

}  // namespace hpcbatch
