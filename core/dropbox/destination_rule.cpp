#include "dropbox/destination_rule.hpp"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace hpcbatch
