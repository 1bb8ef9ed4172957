#include "plugin_host/trust.hpp"

#include "plugin_host/search_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <grp.h>
#include <pwd.h>

namespace hpcbatch {

std::optional<std::string> distrust(const struct stat& facts, uid_t user) {
  if (facts.st_uid != 0 && facts.st_uid != user) {
    return fmt::format("belongs to user {}, neither to root nor to us (user {})", facts.st_uid,
                       user);
  }
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fmt::format("can be written by {}; run: chmod go-w",
                       (facts.st_mode & S_IWOTH) != 0 ? "everybody" : "its group");
  }
  return std::nullopt;
}

namespace {

bool is_writable(const std::filesystem::path& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

/// `path` and what else is wrong in the same way: a careless umask leaves all plugins so, and they
/// are to be mended at once.
std::string all_writable(const std::filesystem::path& path, const std::filesystem::path& root) {
  std::vector<std::filesystem::path> all{path};
  const auto look = [&all](const std::filesystem::path& other) {
    if (is_writable(other) && std::find(all.begin(), all.end(), other) == all.end())
      all.push_back(other);
  };
  for (const auto kind : {HPCBATCH_KIND_SCHEDULER, HPCBATCH_KIND_TRANSPORT, HPCBATCH_KIND_TOOL,
                          HPCBATCH_KIND_ESTIMATOR}) {
    const std::filesystem::path folder = root / folder_of(kind);
    look(folder);
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      if (entry.path().extension() == ".so") look(entry.path());
    }
  }
  std::string text;
  for (const auto& each : all) text += " " + each.string();
  return text;
}

/// Of one user alone, as many systems give each: what it may write, he may.
bool is_private_group(gid_t group, uid_t user) {
  std::vector<char> text(std::size_t{1} << 16);
  struct passwd account {};
  struct passwd* found = nullptr;
  if (::getpwuid_r(user, &account, text.data(), text.size(), &found) != 0 || !found ||
      account.pw_gid != group)
    return false;
  const std::string name = account.pw_name;
  struct group members {};
  struct group* found_group = nullptr;
  if (::getgrgid_r(group, &members, text.data(), text.size(), &found_group) != 0 || !found_group ||
      name != members.gr_name)
    return false;
  for (char** member = members.gr_mem; *member; ++member)
    if (name != *member) return false;
  return true;
}

/// What is wrong with it; that the group of one user alone may write it, as many systems set the umask, is not.
std::optional<std::string> distrust_but_own_group(struct stat facts, uid_t user) {
  if (is_private_group(facts.st_gid, facts.st_uid)) facts.st_mode &= ~static_cast<mode_t>(S_IWGRP);
  return distrust(facts, user);
}

/// Who may rename a folder above puts his own in its place.  In one with the sticky bit only the
/// owner of what is there may.
std::optional<std::string> untrusted_folder_above(const std::filesystem::path& path, uid_t user) {
  for (auto at = path; at.has_relative_path();) {
    at = at.parent_path();
    struct stat facts {};
    if (::stat(at.c_str(), &facts) != 0)
      return fmt::format("{} cannot be read: {}", at.string(), std::strerror(errno));
    if ((facts.st_mode & S_ISVTX) != 0) facts.st_mode &= ~static_cast<mode_t>(S_IWGRP | S_IWOTH);
    if (auto why = distrust_but_own_group(facts, user)) {
      return fmt::format("the folder above it, {}, {}{}", at.string(), *why,
                         why->ends_with("go-w") ? " " + at.string() : "");
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> untrusted_plugin(const std::filesystem::path& file, uid_t user) {
  if (!file.is_absolute()) {
    return fmt::format("plugin {} is refused: its path is not absolute; give the whole path",
                       file.string());
  }
  struct stat facts {};
  if (::stat(file.c_str(), &facts) != 0) {
    return fmt::format("plugin {} cannot be read: {}", file.string(), std::strerror(errno));
  }
  const std::filesystem::path root = file.parent_path().parent_path();
  if (!S_ISREG(facts.st_mode)) return fmt::format("plugin {} is no regular file", file.string());
  if (auto why = distrust_but_own_group(facts, user)) {
    return fmt::format("plugin {} is refused: it {}{}", file.string(), *why,
                       why->ends_with("go-w") ? all_writable(file, root) : "");
  }
  const std::filesystem::path directory = file.parent_path();
  if (::stat(directory.c_str(), &facts) != 0) {
    return fmt::format("directory {} cannot be read: {}", directory.string(), std::strerror(errno));
  }
  if (auto why = distrust_but_own_group(facts, user)) {
    return fmt::format("plugin {} is refused: its directory {}{}", file.string(), *why,
                       why->ends_with("go-w") ? all_writable(directory, root) : "");
  }
  // As it is named, and where links lead to.
  std::error_code error;
  const auto real = std::filesystem::canonical(file, error);
  for (const std::filesystem::path& place : {directory.lexically_normal(), error ? file : real}) {
    if (auto why = untrusted_folder_above(place, user))
      return fmt::format("plugin {} is refused: {}", file.string(), *why);
  }
  return std::nullopt;
}

}  // namespace hpcbatch
