// A task's recipe as a site sees it that does not see all of this machine's files.  Pure.
#pragma once

#include "model/ids.hpp"
#include "model/site.hpp"
#include "wire/wire.pb.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// Files that the task reads and that have to be staged in at the site.
std::vector<std::string> files_to_stage_in(const wire::Start& recipe, const Site& site);

/// Where on the site the outputs of an attempt lie until they are fetched.
std::string folder_of_outputs(const Site& site, const PilotId& pilot, const AttemptId& attempt);

/// What lies there, by the places that its result names.  Each is in that folder under its place,
/// as `staged` says.  Whatever the site sees by now: it may have been configured anew since.
std::vector<wire::Output> outputs_to_fetch(const wire::Start& recipe,
                                           const std::vector<std::uint32_t>& published);

/// Puts the site's names for this machine's.  `place_of` says where a file was staged in to.  Text of
/// the refusal where one is not there.
std::optional<std::string> show_at(
    wire::Start& start, const Site& site, const std::string& folder_of_outputs,
    const std::function<std::optional<std::string>(const std::string&)>& place_of);

}  // namespace hpcbatch
