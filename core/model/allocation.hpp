// Allocations as the engine follows them: one batch job each, from the intent to its end.
#pragma once

#include "model/ids.hpp"
#include "model/resources.hpp"
#include "model/time.hpp"

#include "hpcbatch/scheduler.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace hpcbatch {

/// intended -> submitting -> (unclear ->) queued -> running -> ended
///   intended    stored, nothing asked of the batch system yet
///   submitting  the submit command may have been run
///   unclear     its answer was lost: settled by looking the name up, never by asking again
///   queued      the batch system has it
///   running     the batch system runs it, or one of its pilots has registered
///   ended       the batch system says so, or it was never accepted
enum class AllocationState : std::uint8_t { Intended, Submitting, Unclear, Queued, Running, Ended };
std::string_view to_string(AllocationState state);

/// What the batch system was asked for: what its pilots may say that they are.
struct AskedFor {
  std::uint32_t nodes{1};
  Resources capacity;   ///< of each node, for tasks
  Duration walltime{};  ///< zero: no end
  friend bool operator==(const AskedFor&, const AskedFor&) = default;
};

/// What of an allocation survives the engine.
struct Allocation {
  AllocationId id;
  std::string site;
  std::string shape;
  AllocationState state{AllocationState::Intended};
  std::string number;  ///< the batch system's own, for people and for cancelling
  Time opened{};
  std::optional<Time> running_since;
  std::optional<Time> ended;
  EndCause cause{EndCause::None};
  std::string reason;                ///< for people: refusal, pending reason, how it ended
  bool cancel_asked{false};          ///< by us
  std::uint32_t pilots_seen{0};      ///< how many of its pilots ever registered
  std::optional<AskedFor> asked{};   ///< no value: an engine that did not note it asked
  std::set<std::uint32_t> fenced{};  ///< ranks of pilots that said what they may not
};

}  // namespace hpcbatch
