// `submit --dry-run`: what would run, and where.
#pragma once

#include "cli/client/session.hpp"

#include <boost/json/object.hpp>

namespace hpcbatch {

/// 0 where some shape could run each task, else 2.  Throws CommandError.
int show_dry_run(EngineClient& client, const boost::json::object& request, bool is_json);

}  // namespace hpcbatch
