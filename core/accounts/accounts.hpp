// Asks the guard of trusted paths (posix/trusted_path.hpp) about a path on this machine.
#pragma once

#include "posix/files.hpp"
#include "posix/trusted_path.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace hpcbatch {

/// Accounts and groups that the facts lack, from the user database; the group of this name too.
void add_accounts(PathFacts& facts, const std::string& trust_group);

/// Whether our effective user may trust the path as things are now; nothing: he may.  A path that is
/// not absolute is taken from the current folder.  Blocks on file systems and on the user database;
/// any thread.
std::optional<Distrust> distrust(const std::string& path, Wanted wanted,
                                 const std::string& trust_group = {});

// What is done in another user's name, with his rights as the kernel judges them: ACLs, groups, and
// what a file server keeps from root.

/// A user as file permissions know him.
struct UserRights {
  uid_t user{0};
  std::vector<gid_t> groups;  ///< his first one comes first
};

/// Asks the user database; somebody without an account has no groups.  Blocks; any thread.
UserRights rights_of_user(uid_t user);

/// Whether `as_user` can be another than our own user.
bool may_be_others();

/// Calls `work` as that user: in a process of its own, which ends with it, unless he is ours.  `work`
/// makes system calls alone, with what was made before (the process is a fork of one with threads),
/// and returns a descriptor or 0; else -1 with errno.  Returns errno, 0 for success; `opened` is the
/// descriptor, where one is wanted.  ETIMEDOUT after a minute: the process is killed then.  Any thread.
int as_user(const UserRights& who, const std::function<int()>& work, Fd* opened = nullptr);

}  // namespace hpcbatch
