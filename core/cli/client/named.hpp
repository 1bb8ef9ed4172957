// Submissions by other words than their ids.
#pragma once

#include "cli/client/engine_client.hpp"

#include <boost/json/array.hpp>

#include <functional>
#include <string>
#include <vector>

namespace hpcbatch {

/// The ids that words of the command line stand for.  `last` is what this user has submitted last
/// from a shell, of a file of tasks all of them, `last.3` a task of the newest; `12-15` is each of
/// these; an id is itself; `name`: all that this user has submitted so.  Each once.  Throws
/// CommandError where there is none.
std::vector<std::string> resolve_ids(EngineClient& client, const std::vector<std::string>& words,
                                     const std::string& name);

/// Of `12.1-3` each task; of all else itself.
std::vector<std::string> one_by_one(const std::vector<std::string>& ids);

/// The same for what tasks that are to be submitted wait for.  `connect` is called before the
/// engine is asked, which most need not be.
void resolve_waits(EngineClient& client, boost::json::array& tasks,
                   const std::function<void()>& connect);

}  // namespace hpcbatch
