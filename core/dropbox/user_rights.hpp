// What another user could do with a file, computed from mode and ACL: for engines that are not root
// and cannot ask the kernel in his name (accounts/as_user.hpp).  What a file server knows besides is
// not known here.
#pragma once

#include "accounts/as_user.hpp"
#include "posix/trusted_path.hpp"

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hpcbatch {

/// `right` as others have it: S_IROTH, S_IWOTH or S_IXOTH.
bool has_right(const UserRights& reader, const struct stat& status,
               const std::vector<AclEntry>& acl, mode_t right);

/// Lets a user read an open file of ours, by an ACL beside its mode; where the file system has none it
/// stays as it is.
void let_read(int file, std::uint32_t user);

/// Whether he may pass all folders above what lies at this path (absolute, without links).
bool can_reach(const UserRights& reader, std::string path);

/// Where an open file lies, without links; empty where it has no name.
std::string real_path_of(int descriptor);

}  // namespace hpcbatch
