#include "dropbox/user_rights.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

namespace hpcbatch {

UserRights rights_of_user(std::uint32_t user) {
  UserRights reader{.user = user, .groups = {}};
  struct passwd entry {};
  struct passwd* found = nullptr;
  std::vector<char> text(std::size_t{1} << 16);
  if (::getpwuid_r(user, &entry, text.data(), text.size(), &found) != 0 || !found) return reader;
  int count = 64;
  reader.groups.resize(static_cast<std::size_t>(count));
  while (::getgrouplist(entry.pw_name, entry.pw_gid, reader.groups.data(), &count) < 0)
    reader.groups.resize(static_cast<std::size_t>(count));
  reader.groups.resize(static_cast<std::size_t>(count));
  return reader;
}

bool has_right(const UserRights& reader, const struct stat& status, mode_t right) {
  if (reader.user == 0) return true;
  if (status.st_uid == reader.user) return status.st_mode & (right << 6U);
  const bool in_group =
      std::find(reader.groups.begin(), reader.groups.end(), status.st_gid) != reader.groups.end();
  return status.st_mode & (in_group ? right << 3U : right);
}

bool can_reach(const UserRights& reader, std::string path) {
  for (auto slash = path.rfind('/'); slash != std::string::npos; slash = path.rfind('/')) {
    path.resize(slash);
    struct stat folder {};
    if (::stat(path.empty() ? "/" : path.c_str(), &folder) != 0 ||
        !has_right(reader, folder, S_IXOTH)) {
      return false;
    }
  }
  return true;
}

std::string real_path_of(int descriptor) {
  std::array<char, PATH_MAX> real{};
  const std::string link = fmt::format("/proc/self/fd/{}", descriptor);
  const ssize_t length = ::readlink(link.c_str(), real.data(), real.size() - 1);
  return length <= 0 ? std::string{} : std::string(real.data(), static_cast<std::size_t>(length));
}

}  // namespace hpcbatch
