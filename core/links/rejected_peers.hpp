// Peers that the listeners for pilots have rejected: how many for which reason, and
// which of them the log tells of.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch {

enum class RejectionReason {
  UnknownPilot,    ///< a name that no pilot has, or has any more
  WrongKey,        ///< no proof of its key: a wrong one, or what was recorded of another link
  WrongHello,      ///< does not speak the wire at all
  WrongVersion,    ///< of the wire
  NoProof,         ///< said nothing, or not enough, in its time
  TooLong,         ///< announced a frame beyond the cap
  BrokenFrame,     ///< changed, repeated or left out; of a pilot that had proved its key
  BrokenMessage,   ///< likewise of such a pilot: a whole frame with no message in it
  TooManyAtATime,  ///< unproven peers of one listener
  Overstepped,     ///< a pilot that said what it may not, or more than any pilot says
};
constexpr std::size_t kRejectionReasons = 10;

/// As the API says it: `wrong_key`.
std::string_view word_of(RejectionReason reason);

class RejectedPeers {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// The line for the log, which is `text` and how many others went without one.  Nothing where
  /// there was one for this reason less than a minute ago: whoever connects can do so without end.
  std::optional<std::string> count(RejectionReason reason, const std::string& text, Time now);
  std::uint64_t of(RejectionReason reason) const { return at(reason).count; }
  /// Each reason's word and count, those that never were too.
  std::vector<std::pair<std::string_view, std::uint64_t>> counts() const;

 private:
  struct Tally {
    std::uint64_t count{0};
    std::uint64_t untold{0};
    std::optional<Time> told;
  };
  const Tally& at(RejectionReason reason) const {
    return tallies_[static_cast<std::size_t>(reason)];
  }

  std::array<Tally, kRejectionReasons> tallies_{};
};

}  // namespace hpcbatch
