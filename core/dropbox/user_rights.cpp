#include "dropbox/user_rights.hpp"

#include <fmt/format.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

namespace hpcbatch {

namespace {

bool is_in(const UserRights& reader, gid_t group) {
  return std::find(reader.groups.begin(), reader.groups.end(), group) != reader.groups.end();
}

}  // namespace

bool has_right(const UserRights& reader, const struct stat& status,
               const std::vector<AclEntry>& acl, mode_t right) {
  if (reader.user == 0) return true;
  if (status.st_uid == reader.user) return status.st_mode & (right << 6U);
  // Linux looks at no ACL whose mask gives nothing, not even at what it denies.
  if (acl.empty() || (status.st_mode & S_IRWXG) == 0)
    return status.st_mode & (is_in(reader, status.st_gid) ? right << 3U : right);
  // The order of acl(5): his own entry, else any of his groups' that gives it, else the others'.
  bool is_grouped = false;
  for (const AclEntry& entry : acl) {
    if (entry.tag == AclEntry::User && entry.id == reader.user) return entry.rights & right;
    const bool is_his = (entry.tag == AclEntry::OwnGroup && is_in(reader, status.st_gid)) ||
                        (entry.tag == AclEntry::NamedGroup && is_in(reader, entry.id));
    if (is_his && (entry.rights & right)) return true;
    is_grouped = is_grouped || is_his;
  }
  return !is_grouped && (status.st_mode & right);
}

void let_read(int file, std::uint32_t user) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return;
  const auto bits = [&](unsigned shift) {
    return static_cast<std::uint16_t>((status.st_mode >> shift) & 7U);
  };
  constexpr std::uint16_t kRead = 4;
  constexpr std::uint32_t kNobody = ~0U;
  const std::array<AclEntry, 5> entries{
      {{AclEntry::Owner, bits(6), kNobody},
       {AclEntry::User, kRead, user},
       {AclEntry::OwnGroup, bits(3), kNobody},
       {AclEntry::Mask, static_cast<std::uint16_t>(bits(3) | kRead), kNobody},
       {AclEntry::Others, bits(0), kNobody}}};
  constexpr std::uint32_t kVersion = 2;
  std::string bytes(reinterpret_cast<const char*>(&kVersion), sizeof kVersion);
  bytes.append(reinterpret_cast<const char*>(entries.data()), sizeof entries);
  (void)::fsetxattr(file, "system.posix_acl_access", bytes.data(), bytes.size(), 0);
}

bool can_reach(const UserRights& reader, std::string path) {
  for (auto slash = path.rfind('/'); slash != std::string::npos; slash = path.rfind('/')) {
    path.resize(slash);
    struct stat folder {};
    const char* const at = path.empty() ? "/" : path.c_str();
    if (::stat(at, &folder) != 0 || !has_right(reader, folder, read_acl(at), S_IXOTH)) {
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
