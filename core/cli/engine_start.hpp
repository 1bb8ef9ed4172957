// Starts the user's engine as a process of its own, for the verbs that need one and find none.
#pragma once

#include "cli/engine_client.hpp"
#include "cli/interrupt.hpp"
#include "documents/places.hpp"

#include <optional>
#include <string>

namespace hpcbatch {

enum class Lifetime { UntilStopped, UntilIdle };

/// Connects `client`, starting an engine first where none runs.  Of two callers at once both end up
/// with the same engine.  Throws CommandError: 2 where the configuration is wrong, 3 where no
/// engine can be had (it may run on another host).  Returns whether this call started it.
bool connect_or_start(EngineClient& client, const Places& places, const Interrupt& interrupt,
                      Lifetime lifetime, const std::optional<std::string>& config = {});

}  // namespace hpcbatch
