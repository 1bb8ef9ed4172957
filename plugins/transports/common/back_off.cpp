#include "back_off.hpp"

#include <algorithm>

namespace hpcbatch {

void BackOff::failed(const Error& error, Clock::time_point now) {
  constexpr unsigned kMostDoublings = 10;
  constexpr double kLongest = 60;
  constexpr double kLongestRefused = 600;
  const double longest = std::min(error.kind == Error::Kind::Rejected ? kLongestRefused : kLongest,
                                  static_cast<double>(1u << std::min(failures_, kMostDoublings)));
  // Many that failed together are not to come again together.
  const double pause = std::max(1.0, longest * std::uniform_real_distribution<>(0.6, 1.0)(random_));
  ++failures_;
  until_ = now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(pause));
  reason_ = error.text;
}

std::optional<Error> BackOff::pause(Clock::time_point now) const {
  if (failures_ == 0 || now >= until_) return std::nullopt;
  const auto left = std::chrono::ceil<std::chrono::seconds>(until_ - now).count();
  return Error{Error::Kind::Transient, reason_ + " (login " + std::to_string(failures_) +
                                           " that failed; the next is tried in " +
                                           std::to_string(left) + " s)"};
}

}  // namespace hpcbatch
