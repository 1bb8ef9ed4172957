// Asks the guard of trusted paths (posix/trusted_path.hpp) about a path on this machine.
#pragma once

#include "posix/trusted_path.hpp"

#include <optional>
#include <string>

namespace hpcbatch {

/// Accounts and groups that the facts lack, from the user database; the group of this name too.
void add_accounts(PathFacts& facts, const std::string& trust_group);

/// Whether our effective user may trust the path as things are now; nothing: he may.  A path that is
/// not absolute is taken from the current folder.  Blocks on file systems and on the user database;
/// any thread.
std::optional<Distrust> distrust(const std::string& path, Wanted wanted,
                                 const std::string& trust_group = {});

}  // namespace hpcbatch
