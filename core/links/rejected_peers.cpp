#include "links/rejected_peers.hpp"

#include <fmt/format.h>

#include <utility>

namespace hpcbatch {
namespace {

constexpr std::chrono::minutes kBetweenLines{1};

}  // namespace

std::string_view word_of(RejectionReason reason) {
  switch (reason) {
    case RejectionReason::UnknownPilot:
      return "unknown_pilot";
    case RejectionReason::WrongKey:
      return "wrong_key";
    case RejectionReason::WrongHello:
      return "wrong_hello";
    case RejectionReason::WrongVersion:
      return "wrong_version";
    case RejectionReason::NoProof:
      return "no_proof";
    case RejectionReason::TooLong:
      return "too_long";
    case RejectionReason::BrokenFrame:
      return "broken_frame";
    case RejectionReason::BrokenMessage:
      return "broken_message";
    case RejectionReason::TooManyAtATime:
      return "too_many_at_a_time";
    case RejectionReason::Overstepped:
      return "overstepped";
  }
  return "";
}

std::optional<std::string> RejectedPeers::count(RejectionReason reason, const std::string& text,
                                                Time now) {
  Tally& tally = tallies_[static_cast<std::size_t>(reason)];
  ++tally.count;
  if (tally.told && now - *tally.told < kBetweenLines) {
    ++tally.untold;
    return std::nullopt;
  }
  tally.told = now;
  const std::uint64_t untold = std::exchange(tally.untold, 0);
  std::string line = fmt::format("rejected ({}): {}", word_of(reason), text);
  if (untold > 0) line += fmt::format("; so were {} others since the line before", untold);
  return line;
}

std::vector<std::pair<std::string_view, std::uint64_t>> RejectedPeers::counts() const {
  std::vector<std::pair<std::string_view, std::uint64_t>> all;
  for (std::size_t i = 0; i < tallies_.size(); ++i)
    all.emplace_back(word_of(static_cast<RejectionReason>(i)), tallies_[i].count);
  return all;
}

}  // namespace hpcbatch
