// How long an allocation of a shape is reckoned to wait in its batch system's queue, from the waits
// of those before it and of those that are queued now; and which of several is expected to start
// first.
//
// A shape of which nothing is known counts as one without a wait, so that it gets tried.
#pragma once

#include "model/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hpcbatch::provision {

/// The waits of those that are over; the latest count most.
struct KnownWaits {
  Duration mean{};
  std::uint32_t count{0};
  Time latest{};  ///< when the last of them was over
};

/// One began to run at `now` after it had waited so long.
void learn_wait(KnownWaits& known, Duration wait, Time now);

/// Of one that is asked for now; nothing where nothing is known.  `queued_for`: how long the one
/// that has been queued longest has waited, which its wait is at least.  What is older than a day
/// is known no more: the shape is tried again.
std::optional<Duration> expected_wait(const KnownWaits& known, std::optional<Duration> queued_for,
                                      Time now);

/// The place of each in the order of expected starts, from 0.  Those whose difference is small
/// share a place: noise moves nobody.
std::vector<std::size_t> start_places(const std::vector<Duration>& waits);

}  // namespace hpcbatch::provision
