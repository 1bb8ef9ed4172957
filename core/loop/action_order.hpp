// What of the store each action waits for before it is done: the order on which the promises about
// crashes rest.
//
// A lease is written before it is sent, so that no kill of the engine loses one.  Whatever tells
// somebody that something is safe (answers, acknowledgements, an allocation's intent) waits for the
// disk.  What is said to a pilot goes behind the leases that were decided before it.
#pragma once

#include "model/action.hpp"
#include "planted/planted.hpp"

#include <cstdint>
#include <type_traits>

namespace hpcbatch {

enum class WaitsFor : std::uint8_t {
  Nothing,
  Written,    ///< all saved before is written: it survives our death, not the machine's
  Disk,       ///< all saved before is on disk
  DiskAtOnce  ///< somebody waits for it: no time is spent on waiting for company
};

template <class T, class... Others>
concept OneOf = (std::is_same_v<T, Others> || ...);

/// What is saved, and what nobody takes for a promise.
template <OneOf<SaveArrays, SaveHold, SaveLeases, DropLeases, SaveCancelled, SavePermitted,
                SaveFailedAttempt, SaveResult, SaveResults, SaveArrayEnded, SaveRevived,
                SaveAllocation, SaveKeep, SaveReader, AnswerRefused, WelcomePilot, StayPilot,
                FencePilot, CancelAllocation, PollSite, LookAtQueue, ReadOutbox>
              NoPromise>
WaitsFor order_of(const NoPromise&) {
  return WaitsFor::Nothing;
}
template <OneOf<RecallLeases, KillAttempt, PermitPublish, StageIn> BehindLeases>
WaitsFor order_of(const BehindLeases&) {
  return WaitsFor::Written;
}
/// A file, too, is removed only when what it says is on disk here.
template <OneOf<TellEnded, ForgetAllocation> OnDisk>
WaitsFor order_of(const OnDisk&) {
  return WaitsFor::Disk;
}
/// A pilot ends behind its acknowledgements: it must not keep what it was about to be told.
template <OneOf<AnswerCount, EndPilot, OpenAllocation, EngineIdle> Awaited>
WaitsFor order_of(const Awaited&) {
  return WaitsFor::DiskAtOnce;
}
inline WaitsFor order_of(const SendLeases&) {
  return HPCBATCH_PLANTED(lease_sent_before_written) ? WaitsFor::Nothing : WaitsFor::Written;
}
inline WaitsFor order_of(const AcknowledgeResults&) {
  return HPCBATCH_PLANTED(acknowledged_before_commit) ? WaitsFor::Nothing : WaitsFor::Disk;
}
inline WaitsFor order_of(const AnswerSubmit&) {
  return HPCBATCH_PLANTED(answered_before_commit) ? WaitsFor::Nothing : WaitsFor::DiskAtOnce;
}
inline WaitsFor order_of(const Action& action) {
  return std::visit([](const auto& a) { return order_of(a); }, action);
}

}  // namespace hpcbatch
