// Of a list of items those that ended well in submissions that there are, and are not run again.
#pragma once

#include "cli/client/engine_client.hpp"
#include "cli/parse/command.hpp"

#include <boost/json/object.hpp>

namespace hpcbatch {

/// The task runs only what `--skip-done` leaves of its items, where that is said; how many were left
/// out is told on standard error.  False: nothing is left to run.  Throws CommandError where there
/// is no such submission, and where it has no items.
bool leave_out_done(EngineClient& client, const ManyOptions& many, boost::json::object& task);

}  // namespace hpcbatch
