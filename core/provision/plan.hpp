// Which allocations to ask for now: waiting work against the room that running and queued pilots
// still have.
//
// Work is the time asked, else what runs and ran of its class lets expect, else 60 s a task.  Room
// is what fits into a pilot side by side times what is left of its walltime.  A shape that its
// batch system has never accepted is asked for once; after that as many at once as the work fills,
// within the limits of shape (with what was made from it for choices of tasks) and site.  Of the
// shapes that waste the fewest GPUs the one that is expected to start first is asked first; of what
// may choose its device the one where it is expected to be done first: its wait, and the work at the
// device's speed.
//
// Beyond that, one pilot more is asked for while the time by which all is done the sooner is worth
// more to the site than the pilot's time that is idle at its beginning and end.  All that waits for
// the same pilots counts together there, as tools ask for each input's own needs.
#pragma once

#include "foresight/look_ahead.hpp"
#include "model/ids.hpp"
#include "model/needs.hpp"
#include "model/site.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::provision {

/// What of a class runs now.  A task that has run for a while is taken to be in the middle of its
/// run.
struct Running {
  std::uint64_t tasks{0};
  Duration sum{};      ///< of the runs expected of each
  Duration longest{};  ///< of these
  Duration elapsed{};  ///< of all together
};

/// What is known of how long tasks take: of so many, which have run for so long together by now.
struct Seen {
  std::uint64_t tasks{0};
  std::uint64_t ended{0};  ///< of these
  Duration time{};
};

/// Tasks of one class that could start now if there were room.
struct Demand {
  Needs needs;
  std::uint64_t tasks{0};
  std::optional<Duration> mean_run;  ///< of those that ran
  std::uint64_t runs{0};             ///< how many these were
  Running running{};
  Seen of_all{};        ///< of all classes together, for one of which little is known
  bool bounded{false};  ///< some of them only so many at once: more room is of no use to those
  /// Of what leaves its device open, how long it is expected to take on each (device_of).
  std::vector<std::pair<std::string, Duration>> run_on{};
};

/// One pilot that runs or is queued.
struct Supply {
  std::string site;
  std::vector<std::string> tags;
  std::vector<std::string> made_for;  ///< as its shape
  Resources capacity;                 ///< what tasks can use
  std::optional<Duration> left;       ///< time for tasks; no value: no end
  double busy{0};                     ///< the part of its room that is spoken for, 0 to 1
  std::uint32_t nodes{1};             ///< that its allocation has
};

/// One shape that may be asked for.
struct Outlet {
  std::string site;
  Shape shape;
  std::uint32_t queued{0};      ///< allocations of the shape, those being submitted included
  std::uint32_t submitting{0};  ///< of these
  std::uint32_t running{0};
  bool proven{false};      ///< the batch system has accepted one before
  bool open{true};         ///< no back-off, pause or reached limit
  Duration wait{};         ///< expected, of one that is asked for now (plan.hpp)
  std::uint32_t renew{0};  ///< to be asked for whatever work there is (plan.hpp)
};

struct SiteLimits {
  std::string site;
  std::uint32_t queued{0};
  std::uint32_t running{0};
  std::uint32_t max_queued{0};
  std::uint32_t max_running{0};
  double waiting_cost{0};  ///< of an hour in which work waits; 0: no pilot more for that
  double idle_cost{1};     ///< of an idle pilot-hour
  Duration idle_after{};   ///< that a pilot is idle before it ends
};

struct Ask {
  std::string site;
  std::string shape;
  std::uint32_t count{0};
  friend bool operator==(const Ask&, const Ask&) = default;
};

/// How long a task of the class is reckoned to take.
Duration expected_run(const Demand& demand);
/// The same of a task that has run for `elapsed` and still runs.
Duration expected_run(const Demand& demand, Duration elapsed);
/// What is known by those of the class that ended and run.
Seen seen_of(const Demand& demand);
/// Counts a task among those of the class that run.
void count_running(Demand& demand, Duration elapsed);

/// The part of a pilot's room, 0 to 1, that a task which has run for `elapsed` will still use.
double busy_with(const Demand& demand, Duration elapsed, const Resources& capacity, Duration left);

/// How long a task is reckoned to take in such a pilot.
Duration expected_run(const Demand& demand, const Resources& capacity);

/// How many tasks of a class one pilot can still run within `left`; an infinite room is returned as
/// infinity.
double tasks_in_room(const Demand& demand, const Resources& capacity, std::optional<Duration> left);

/// Demands in the order in which they are to be served.
std::vector<Ask> plan(const std::vector<Demand>& demands, std::vector<Supply> supplies,
                      std::vector<Outlet> outlets, std::vector<SiteLimits> sites);

// How long an allocation of a shape is reckoned to wait in its batch system's queue, from the waits
// of those before it and of those that are queued now; and which of several is expected to start
// first.
//
// A shape of which nothing is known counts as one without a wait, so that it gets tried.

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

// When to ask for the allocation that follows one of a shape of which pilots are to be there all the
// time.

/// The allocations of a shape that is kept.
struct Kept {
  std::uint32_t wanted{1};  ///< at once
  Duration until{};         ///< from now on: how long they are wanted
  /// Of each: until when tasks may run there, of one that waits as it is expected to start; where
  /// nobody knows, for ever.
  std::vector<Duration> left;
  std::vector<Duration> waits;  ///< of one that is asked for now, in order, each as probable as the
                                ///< others; empty: nobody knows
};

/// How many to ask for now: for those that are missing, and for those whose end comes no later than
/// their successor may.  Where nobody knows how long that waits, it is asked for at the end.
std::uint32_t renewals(Kept kept, const foresight::AskingCosts& costs);

}  // namespace hpcbatch::provision
