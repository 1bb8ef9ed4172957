#include "pilot/policy/decide.hpp"

#include <algorithm>
#include <chrono>

namespace hpcbatch::pilot {
namespace {

Lease lease_of(const wire::Start& start) {
  Lease lease{from_wire(start.attempt()), {}, std::chrono::milliseconds(start.time_limit_ms())};
  for (const wire::Amount& amount : start.granted())
    lease.granted.emplace_back(amount.name(), amount.value());
  lease.begins_later = start.has_service() || !start.container().empty();
  lease.cpus.bind = cpu_bind_of(start.cpu_bind());
  lease.cpus.threads_per_core = start.threads_per_core();
  lease.farewell = {std::chrono::milliseconds(start.grace_ms()),
                    static_cast<int>(start.early_signal()),
                    std::chrono::milliseconds(start.early_signal_ms())};
  lease.holds_room = start.holds_room();
  return lease;
}

constexpr auto kLastSignalTo = static_cast<std::uint32_t>(SignalTo::Steps);

std::uint32_t wire_state(Decide::State state) {
  switch (state) {
    case Decide::State::Waiting:
      return 1;
    case Decide::State::Running:
      return 2;
    case Decide::State::Delivered:
      return 3;
    case Decide::State::Staged:
    case Decide::State::Publishing:
      return 4;
  }
  return 0;
}

}  // namespace

std::uint32_t leased_by(const wire::Start& start) {
  return std::max<std::uint32_t>(1, start.count());
}

void apply_message(Decide& decide, const wire::ToPilot& message, Time now) {
  if (message.welcome()) decide.welcomed(now);
  if (message.confirmed_by() != 0) decide.confirmed(message.confirmed_by());
  for (const wire::Attempt& attempt : message.acknowledged())
    decide.acknowledged(from_wire(attempt), now);
  for (const wire::Start& start : message.start()) {
    Lease lease = lease_of(start);
    for (std::uint32_t i = 0; i < leased_by(start); ++i) {
      lease.id = neighbour(from_wire(start.attempt()), i);
      decide.leased(lease);
    }
  }
  if (message.recall() > 0) decide.recalled(message.recall());
  for (const wire::Kill& kill : message.kill()) {
    const Failure failure = parse_failure(kill.failure()).value_or(Failure::Cancelled);
    decide.kill_asked(from_wire(kill.attempt()), failure, kill.silent(), now);
  }
  for (const wire::Signal& signal : message.signal()) {
    decide.signal_asked({from_wire(signal.attempt()), static_cast<int>(signal.number()),
                         static_cast<SignalTo>(std::min(signal.to(), kLastSignalTo))});
  }
  for (const wire::Attempt& attempt : message.publish()) decide.publish_allowed(from_wire(attempt));
  if (message.has_stay_ms())
    decide.stay_until(now + std::chrono::milliseconds(message.stay_ms()), now);
  if (message.end()) decide.must_leave(LeaveCause::EngineEnds, now);
  if (message.fenced()) decide.must_leave(LeaveCause::Fenced, now);
}

void say_held(const Decide& decide, wire::Register& registration) {
  registration.set_confirmed_by(decide.confirmed_by());
  for (const auto& [id, state] : decide.held()) {
    wire::Held* held = registration.add_held();
    to_wire(id, held->mutable_attempt());
    held->set_state(wire_state(state));
  }
}

}  // namespace hpcbatch::pilot
