// `GET /metrics`: what a monitoring system keeps of the engine.
#pragma once

#include "api/engine_routes.hpp"
#include "runtime/runtime.hpp"

#include <string>

namespace hpcbatch {

/// In Prometheus' text format.  It does not ask the store, which may hang.  Labels are sites, states
/// and kinds of failure, never what users name: the configuration bounds how many series there are.
/// On the loop's thread; `requests`: that clients have made.
std::string metrics_text(Runtime& runtime, const EngineFacts& facts, std::uint64_t requests);

}  // namespace hpcbatch
