// Hands a submit to the engine such that it happens once, whatever becomes of engine and connection
// meanwhile.
#pragma once

#include "cli/client/engine_client.hpp"

#include <boost/json/object.hpp>

#include <string>
#include <vector>

namespace hpcbatch {

/// Starts the engine if none runs.  `request` must have a key: where the answer is lost, the same
/// is sent again.
std::vector<std::string> submit_safely(EngineClient& client, const Session& session,
                                       const boost::json::object& request);

}  // namespace hpcbatch
