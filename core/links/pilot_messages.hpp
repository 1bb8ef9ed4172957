// Between the wire and the engine: what a pilot says as events, actions as what is said to a pilot.
// Pure.
#pragma once

#include "model/action.hpp"
#include "model/event.hpp"
#include "model/ids.hpp"
#include "model/task.hpp"
#include "wire/wire.pb.h"

#include <cstddef>
#include <cstdint>
#include <optional>
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
void say(const ConfirmPilot& action, wire::ToPilot& message);
void say(const RecallLeases& action, wire::ToPilot& message);
void say(const KillAttempt& action, wire::ToPilot& message);
void say(const AcknowledgeResults& action, wire::ToPilot& message);
void say(const PermitPublish& action, wire::ToPilot& message);
void say(const StayPilot& action, wire::ToPilot& message);
void say(const EndPilot& action, wire::ToPilot& message);
void say(const FencePilot& action, wire::ToPilot& message);

// The most that a pilot may say in one message, all in one place.  What is more, or is of no form
// that a pilot has ever written, is none of ours speaking: nothing of it is acted upon.  A frame as
// a whole has 16 MiB at most (wire/encrypted_link.hpp), which bounds the lists of attempts and output.
// Pure.

namespace limits {
constexpr int kResources = 256;          ///< named amounts of a node
constexpr int kGpus = 1024;              ///< of a node
constexpr int kServices = 4096;          ///< that live at a pilot, and that start there
constexpr int kRefusals = 256;           ///< of its self-checks
constexpr int kCpus = 65536;             ///< that a task was bound to, and their highest number
constexpr int kPublished = 65536;        ///< outputs of a task
constexpr std::size_t kName = 256;       ///< of a node, a resource, a version, a batch job, a GPU
constexpr std::size_t kLongName = 4096;  ///< of a service, a way to the engine, a file
constexpr std::size_t kText = std::size_t{64}
                              << 10;  ///< for people, and what a task says of itself
constexpr std::uint64_t kPlace = std::uint64_t{1} << 60;  ///< in a stream or a log
constexpr std::int64_t kTimeLeftMs = std::int64_t{100} * 365 * 24 * 3600 * 1000;
}  // namespace limits

/// What of a message is beyond these, in words; nothing: all of it is within them.
std::optional<std::string> beyond_limits(const PilotId& pilot, const wire::ToEngine& message);

/// The same of a result that lies in an outbox of that allocation.
std::optional<std::string> beyond_limits(const AllocationId& allocation,
                                         const wire::Result& result);

/// What was measured on a node, brought to what can be true: a clock that is far off is not
/// believed (only the length of a run is taken from it then), an amount that no node has counts as
/// not known, too long a text is cut.
Outcome sensible(Outcome outcome, Time now);

}  // namespace hpcbatch
