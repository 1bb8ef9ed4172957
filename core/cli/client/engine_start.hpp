// Starts the user's engine as a process of its own, for the verbs that need one and find none.
#pragma once

#include "cli/client/engine_client.hpp"
#include "cli/process/exit.hpp"
#include "documents/state_paths.hpp"

#include <optional>
#include <string>

namespace hpcbatch {

enum class Lifetime { UntilStopped, UntilIdle };

/// Connects `client`, starting an engine first where none runs.  Of two callers at once both end up
/// with the same engine.  Throws CommandError: 2 where the configuration is wrong, 3 where no
/// engine can be had (it may run on another host).  Returns whether this call started it.  Where
/// nothing else is said, with the configuration of one that died, and for as long as that was to
/// run.
bool connect_or_start(EngineClient& client, const Places& places, const Interrupt& interrupt,
                      Lifetime lifetime, const std::optional<std::string>& config = {});

/// Connects `client` to an engine that runs.  Where one lives that has lost its socket, waits for it
/// for some seconds, and says on standard error that it does; what came of the last try otherwise.
/// Throws InterruptedByUser.
Answer connect_to_running(EngineClient& client, const Places& places, const Interrupt& interrupt);

/// Throws CommandError (2) with the engine's sentence where it would not take that configuration.
void check_configuration(const std::optional<std::string>& config);

/// For verbs that look at what there is, or change it: the same, and again where the engine has died
/// before it has answered a `get`.  Says on standard error where an engine was started, because its
/// work goes on then.
void find_engine(EngineClient& client, const Places& places, const Interrupt& interrupt);

}  // namespace hpcbatch
