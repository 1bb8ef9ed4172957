// The files that a task has made for others: checked when it has ended, moved to their destinations
// when the engine allows it; all of them or none, as far as file systems let.
#pragma once

#include "prepare.hpp"
#include "wire/wire.pb.h"

#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

/// Each is there, or is optional, and is a regular file, reached through no link.
std::optional<Refusal> check_outputs(const std::string& directory,
                                     const std::vector<wire::Output>& outputs);

/// May take long: large files are copied where a file system ends.  What it says with a Refusal is
/// not published.
std::optional<Refusal> publish_outputs(const std::string& directory,
                                       const std::vector<wire::Output>& outputs);

}  // namespace hpcbatch::pilot
