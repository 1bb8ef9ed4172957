// What a user could do with a file by its mode, as the kernel would judge.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hpcbatch {

/// A user as file permissions know him.
struct UserRights {
  std::uint32_t user{0};
  std::vector<gid_t> groups;
};

/// Asks the user database; somebody without an account has no groups.
UserRights rights_of_user(std::uint32_t user);

/// `right` as others have it: S_IROTH, S_IWOTH or S_IXOTH.
bool has_right(const UserRights& reader, const struct stat& status, mode_t right);

/// Whether he may pass all folders above what lies at this path (absolute, without links).
bool can_reach(const UserRights& reader, std::string path);

/// Where an open file lies, without links; empty where it has no name.
std::string real_path_of(int descriptor);

}  // namespace hpcbatch
