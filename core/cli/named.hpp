// Submissions by other words than their ids.
#pragma once

#include "cli/engine_client.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

/// `last` is the newest that this user has submitted from a shell, `last.3` a task of it; an id
/// stays as it is.  Throws CommandError where there is none.
std::string resolve_id(EngineClient& client, const std::string& word);
std::vector<std::string> resolve_ids(EngineClient& client, const std::vector<std::string>& words,
                                     const std::string& name);

}  // namespace hpcbatch
