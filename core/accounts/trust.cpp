#include "accounts/trust.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

constexpr std::size_t kFirstRoom = std::size_t{1} << 14;
constexpr std::size_t kMostRoom = std::size_t{1} << 24;  // groups of a hundred thousand members

/// `ask` fills the room that it is given and says ERANGE where that is too small.
template <class Ask>
bool asked(std::vector<char>& room, const Ask& ask) {
  for (room.resize(kFirstRoom); room.size() <= kMostRoom; room.resize(room.size() * 4)) {
    const int error = ask();
    if (error != ERANGE) return error == 0;
  }
  return false;
}

std::optional<Account> account_of(uid_t user) {
  std::vector<char> room;
  struct passwd entry {};
  struct passwd* found = nullptr;
  if (!asked(room, [&] { return ::getpwuid_r(user, &entry, room.data(), room.size(), &found); }) ||
      !found)
    return std::nullopt;
  return Account{entry.pw_name, entry.pw_gid};
}

Group group_from(const struct group& entry) {
  Group group{entry.gr_name, {}};
  for (char** member = entry.gr_mem; *member; ++member) group.members.emplace_back(*member);
  return group;
}

void add_group(PathFacts& facts, gid_t id) {
  if (facts.groups.contains(id)) return;
  std::vector<char> room;
  struct group entry {};
  struct group* found = nullptr;
  if (asked(room, [&] { return ::getgrgid_r(id, &entry, room.data(), room.size(), &found); }) &&
      found)
    facts.groups.emplace(id, group_from(entry));
}

void add_group(PathFacts& facts, const std::string& name) {
  std::vector<char> room;
  struct group entry {};
  struct group* found = nullptr;
  if (asked(room,
            [&] { return ::getgrnam_r(name.c_str(), &entry, room.data(), room.size(), &found); }) &&
      found)
    facts.groups.emplace(entry.gr_gid, group_from(entry));
}

void add_account(PathFacts& facts, uid_t user) {
  if (facts.accounts.contains(user)) return;
  if (auto account = account_of(user)) facts.accounts.emplace(user, std::move(*account));
}

/// Most paths are root's and the user's own, and the user database may be far away.
bool needs_names(const PathFacts& facts) {
  return std::any_of(facts.parts.begin(), facts.parts.end(), [&](const PathPart& part) {
    return (part.owner != 0 && part.owner != facts.user) || part.group_writes ||
           (part.others_write && (part.mode & S_ISVTX) == 0) || !part.grants.empty();
  });
}

}  // namespace

void add_accounts(PathFacts& facts, const std::string& trust_group) {
  if (!trust_group.empty()) add_group(facts, trust_group);
  if (!needs_names(facts)) return;
  add_account(facts, 0);
  add_account(facts, facts.user);
  for (const PathPart& part : facts.parts) {
    add_account(facts, part.owner);
    if (part.group_writes) add_group(facts, part.group);
    for (const Grant& grant : part.grants) {
      if (grant.is_group)
        add_group(facts, grant.id);
      else
        add_account(facts, grant.id);
    }
  }
}

std::optional<Distrust> distrust(const std::string& path, Wanted wanted,
                                 const std::string& trust_group) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  PathFacts facts = walk_path(error ? path : absolute.string(), ::geteuid());
  add_accounts(facts, trust_group);
  return distrust(facts, wanted, trust_group);
}

}  // namespace hpcbatch
