// Between the wire and the engine: what a pilot says as events, actions as what is said to a pilot.
// Pure.
#pragma once

#include "model/action.hpp"
#include "model/event.hpp"
#include "wire/wire.pb.h"

#include <string>
#include <vector>

namespace hpcbatch {

/// Of a message that has one.
PilotRegistered registration_of(const PilotId& pilot, const wire::ToEngine& message);
/// All but registration, output and input, in the order in which they are to be handled.
std::vector<Event> events_of(const PilotId& pilot, const wire::ToEngine& message, Time now);
/// What pilots left behind in their outboxes, from serialized wire::Result messages; what cannot be
/// read is left out.
std::vector<AttemptEnd> results_of_outbox(const std::vector<std::string>& results, Time now);

/// A recipe's start, completed for one attempt.
wire::Start start_of(const SendLeases::Lease& lease, wire::Start recipe);

void say(const WelcomePilot& action, wire::ToPilot& message);
void say(const RecallLeases& action, wire::ToPilot& message);
void say(const KillAttempt& action, wire::ToPilot& message);
void say(const AcknowledgeResults& action, wire::ToPilot& message);
void say(const PermitPublish& action, wire::ToPilot& message);
void say(const DrainPilot& action, wire::ToPilot& message);
void say(const EndPilot& action, wire::ToPilot& message);
void say(const FencePilot& action, wire::ToPilot& message);

}  // namespace hpcbatch
