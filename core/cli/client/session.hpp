// What every verb is given: where things lie, and how the user interrupts.
#pragma once

#include "cli/client/engine_client.hpp"
#include "cli/process/interrupt.hpp"
#include "documents/state_paths.hpp"

namespace hpcbatch {

struct Session {
  Places places;
  Interrupt& interrupt;

  EngineClient client() const { return EngineClient(places, interrupt.descriptor()); }
};

}  // namespace hpcbatch
