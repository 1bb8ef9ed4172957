// What is done in another user's name, with his rights as the kernel judges them: ACLs, groups, and
// what a file server keeps from root.
#pragma once

#include "posix/files.hpp"

#include <functional>
#include <vector>

#include <sys/types.h>

namespace hpcbatch {

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
