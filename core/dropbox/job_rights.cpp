#include "dropbox/job_rights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>

#include <sys/xattr.h>
#include <unistd.h>

namespace hpcbatch {

bool is_below(std::string_view path, std::string_view directory) {
  while (directory.size() > 1 && directory.back() == '/') directory.remove_suffix(1);
  if (directory == "/") return path.starts_with('/');
  return path == directory || (path.starts_with(directory) && path[directory.size()] == '/');
}

std::string why_no_destination(std::string_view path) {
  if (!path.starts_with('/')) return "it is not an absolute path";
  if (path.ends_with('/') || path.ends_with("/.")) return "it names a folder, not a file";
  if (path.find("/../") != std::string_view::npos || path.ends_with("/..")) return "it holds '..'";
  if (path.find('\0') != std::string_view::npos) return "it holds a NUL byte";
  return "";
}

namespace {

bool could_replace(const DestinationFacts& facts, std::uint32_t owner_of_job) {
  constexpr std::uint32_t kSticky = 01000;
  if (facts.is_engines_user || owner_of_job == 0) return true;  // the kernel judges the engine
  return facts.submitter_can_write &&
         (!(facts.directory_mode & kSticky) || facts.directory_owner == owner_of_job);
}

}  // namespace

std::string why_not_there(const DestinationFacts& facts, std::uint32_t owner_of_job,
                          const std::vector<std::string>& allow) {
  using Existing = DestinationFacts::Existing;
  constexpr std::uint32_t kOthersCanWrite = 022;
  if (facts.is_dropbox) return "it lies in the drop box itself";
  const bool is_allowed = std::any_of(
      allow.begin(), allow.end(),
      [&](const std::string& directory) { return is_below(facts.real_directory, directory); });
  if (!is_allowed) {
    if (facts.directory_owner != owner_of_job) {
      return fmt::format(
          "the folder {} belongs to user {} and the job file to user {}; allow the folder by name "
          "(--allow) if that is meant",
          facts.real_directory, facts.directory_owner, owner_of_job);
    }
    if (facts.directory_mode & kOthersCanWrite) {
      return fmt::format(
          "others than its owner can write the folder {} (mode {:04o}); take that right away or "
          "allow "
          "the folder by name (--allow)",
          facts.real_directory, facts.directory_mode & 07777U);
    }
  }
  switch (facts.existing) {
    case Existing::Nothing:
      return "";
    case Existing::Link:
      return "a symbolic link stands there already";
    case Existing::Other:
      return "something that is no regular file stands there already";
    case Existing::File:
      if (facts.existing_owner == owner_of_job) return "";
      if (is_allowed && could_replace(facts, owner_of_job)) return "";
      return fmt::format(
          "a file of user {} stands there already, which user {}, to whom the job file belongs, "
          "may "
          "not replace",
          facts.existing_owner, owner_of_job);
  }
  return "";
}

namespace {

constexpr std::uint32_t kRoot = 0;
constexpr std::uint32_t kOthersCanWrite = 022;
constexpr std::uint32_t kSticky = 01000;

bool is_ours_or_roots(std::uint32_t owner, std::uint32_t us) {
  return owner == us || owner == kRoot;
}

std::string shown(std::uint32_t mode) {
  return fmt::format("mode {:04o}", mode & 07777U);
}

}  // namespace

bool others_can_put(const FolderFacts& folder, std::uint32_t us) {
  return !is_ours_or_roots(folder.owner, us) || (folder.mode & kOthersCanWrite) != 0 ||
         folder.can_be_swapped;
}

std::string why_no_dropbox(const FolderFacts& folder, std::uint32_t us) {
  if (!(folder.mode & kOthersCanWrite)) return "";
  if (!(folder.mode & kSticky)) {
    return fmt::format(
        "others than its owner can write it and rename what is not theirs ({}); use chmod go-w, or "
        "chmod +t so that each renames only his own",
        shown(folder.mode));
  }
  if (us != kRoot && folder.owner != us) {
    return fmt::format(
        "its sticky bit ({}) keeps user {} from taking what others put there; it must belong to "
        "that user",
        shown(folder.mode), us);
  }
  return "";
}

std::string why_nobodys_word(const FolderFacts& folder, const JobFacts& file, std::uint32_t us) {
  if (const std::string why = why_no_dropbox(folder, us); !why.empty())
    return "the drop box serves nobody: " + why;
  if (file.is_known)
    return "it was taken before, or the drop box wrote it; a job is a new file of its submitter's";
  if (file.links > 1) return "it has another name elsewhere (a hard link); a job file has one name";
  if (file.mode & kOthersCanWrite) {
    return fmt::format(
        "others than its owner can write it ({}), so it is not its owner's word; use chmod go-w",
        shown(file.mode));
  }
  if (is_ours_or_roots(file.owner, us)) {
    if (!others_can_put(folder, us)) return "";
    return fmt::format(
        "it belongs to user {}, and others than user {} and root can put files into the drop box "
        "(it belongs to user {}, {}{}); jobs of that user go through a drop box of their own, or "
        "`hpcbatch submit`",
        file.owner, us, folder.owner, shown(folder.mode),
        folder.can_be_swapped ? ", and others can rename it or a folder above it" : "");
  }
  if (is_ours_or_roots(folder.owner, us) || folder.owner == file.owner) return "";
  return fmt::format(
      "it belongs to user {}, and user {}, to whom the drop box belongs, can put others' files "
      "there; give the folder to user {}",
      file.owner, folder.owner, us);
}

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
