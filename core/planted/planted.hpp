// What only tests switch on.  Faults on purpose prove that the tests of the whole system see them
// (tests/clockwork).  Nothing that a user can say reaches these switches.
#pragma once

#define HPCBATCH_PLANTED_FAULT_NAMES(X) \
  X(acknowledged_before_commit)         \
  X(answered_before_commit)             \
  X(asked_again_when_unclear)           \
  X(cancel_forgotten_by_restart)        \
  X(dependant_starts_early)             \
  X(end_of_pilot_overlooked)            \
  X(endless_pilot_used_up)              \
  X(epoch_not_checked)                  \
  X(epoch_without_start)                \
  X(fence_not_heard)                    \
  X(gone_when_absent_once)              \
  X(hold_not_heard)                     \
  X(idle_pilot_stays)                   \
  X(lease_kept_on_cancel)               \
  X(lease_sent_before_written)          \
  X(leases_forgotten_by_restart)        \
  X(limit_of_site_overlooked)           \
  X(no_back_off)                        \
  X(other_process_taken_for_it)         \
  X(outbox_not_read)                    \
  X(published_without_permission)       \
  X(result_dropped_with_link)           \
  X(retries_not_counted)                \
  X(room_given_twice)                   \
  X(room_not_given_back)                \
  X(silence_leases_again)

namespace hpcbatch {

enum class PlantedFault {
  none,
#define HPCBATCH_PLANTED_FAULT_(name) name,
  HPCBATCH_PLANTED_FAULT_NAMES(HPCBATCH_PLANTED_FAULT_)
#undef HPCBATCH_PLANTED_FAULT_
};
/// The one that is switched on.  Set it before the first event; no thread may read it meanwhile.
inline PlantedFault planted_fault = PlantedFault::none;
/// Whether the engine checks all its tables after every event.
inline bool walks_invariants = false;

}  // namespace hpcbatch

#define HPCBATCH_PLANTED(name) (::hpcbatch::planted_fault == ::hpcbatch::PlantedFault::name)
