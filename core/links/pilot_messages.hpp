// Between the wire and the engine: what a pilot says as events, actions as what is said to a pilot.
// Pure.
#pragma once

#include "model/action.hpp"
#include "model/event.hpp"
#include "wire/wire.pb.h"

#include <string>
#include <vector>

namespace hpcbatch {

/// All that is to be asked of a message before anything in it is acted upon (Engine::overstep).
PilotClaims claims_of(const PilotId& pilot, const wire::ToEngine& message);
/// Of a message that has one.
PilotRegistered registration_of(const PilotId& pilot, const wire::ToEngine& message);
/// All but registration, output and input, in the order in which they are to be handled.
std::vector<Event> events_of(const PilotId& pilot, const wire::ToEngine& message, Time now);
/// What pilots of that allocation left behind in their outboxes, from serialized wire::Result
/// messages; what cannot be read, or is beyond_limits, is left out.
std::vector<AttemptEnd> results_of_outbox(const AllocationId& allocation,
                                          const std::vector<std::string>& results, Time now);

/// Neighbours of an array that are leased alike, with epochs that count on: said in one.
struct LeaseRun {
  SendLeases::Lease first;
  std::uint32_t count{1};
};
std::vector<LeaseRun> runs_of(const std::vector<SendLeases::Lease>& leases);
/// The lease of one of them.
SendLeases::Lease lease_in(const LeaseRun& run, std::uint32_t place);
/// A recipe's start, completed for these attempts.
wire::Start start_of(const LeaseRun& run, wire::Start recipe);

void say(const WelcomePilot& action, wire::ToPilot& message);
void say(const RecallLeases& action, wire::ToPilot& message);
void say(const KillAttempt& action, wire::ToPilot& message);
void say(const AcknowledgeResults& action, wire::ToPilot& message);
void say(const PermitPublish& action, wire::ToPilot& message);
void say(const StayPilot& action, wire::ToPilot& message);
void say(const EndPilot& action, wire::ToPilot& message);
void say(const FencePilot& action, wire::ToPilot& message);

}  // namespace hpcbatch
