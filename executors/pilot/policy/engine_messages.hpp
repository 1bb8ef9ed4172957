// What the engine says, as far as it is for what the pilot decides.  Pure.
#pragma once

#include "pilot/policy/decide.hpp"

namespace hpcbatch::pilot {

/// How many neighbours it stands for.
std::uint32_t leased_by(const wire::Start& start);

/// In the order in which it was meant: what is acknowledged and leased before what is taken back.
void apply_message(Decide& decide, const wire::ToPilot& message, Time now);

/// What the pilot holds, for its registration.
void say_held(const Decide& decide, wire::Register& registration);

}  // namespace hpcbatch::pilot
