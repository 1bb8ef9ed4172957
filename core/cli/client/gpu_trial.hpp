// A site's GPUs, tried on demand: a task to each shape that has some, and what the pilots that came
// for them found.
#pragma once

#include "cli/client/engine_client.hpp"
#include "cli/show/terminal.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <chrono>

namespace hpcbatch {

/// `site` as the API has it.  Rows of `check` (shape, node and GPU), `ok` and `text`; of a shape for
/// which no pilot came in `time` one that says why.  Throws CommandError where no shape has GPUs.
boost::json::array try_gpus(EngineClient& client, const Session& session,
                            const boost::json::object& site, std::chrono::milliseconds time,
                            StatusLine& status);

}  // namespace hpcbatch
