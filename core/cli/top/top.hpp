// `top`: what the engine does, live on a terminal, or one picture of it.
#pragma once

#include "cli/client/engine_client.hpp"
#include "cli/parse/command.hpp"

namespace hpcbatch {

/// The exit code; throws CommandError and InterruptedByUser.
int perform(const TopCommand& command, const Session& session);

}  // namespace hpcbatch
