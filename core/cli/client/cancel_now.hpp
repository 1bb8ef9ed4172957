// The end of tasks where a verb itself is being ended.
#pragma once

#include "documents/state_paths.hpp"

#include <boost/json/array.hpp>

#include <chrono>

namespace hpcbatch {

/// Whether the engine was told.  On a connection of its own, which is not to be interrupted by what
/// led here.
bool cancel_now(const Places& places, const boost::json::array& ids,
                std::chrono::milliseconds time);

}  // namespace hpcbatch
