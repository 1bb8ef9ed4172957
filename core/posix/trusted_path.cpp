#include "posix/trusted_path.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <deque>

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

constexpr int kMostLinks = 40;  // as the kernel does
constexpr std::size_t kLargestAcl = 65'536;
constexpr mode_t kModeBits = 07777;

PathPart::Kind kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return PathPart::Kind::Folder;
  if (S_ISREG(mode)) return PathPart::Kind::File;
  return S_ISLNK(mode) ? PathPart::Kind::Link : PathPart::Kind::Other;
}

PathPart part_of(const std::string& path, const struct stat& facts) {
  PathPart part{.path = path,
                .kind = kind_of(facts.st_mode),
                .owner = facts.st_uid,
                .group = facts.st_gid,
                .mode = facts.st_mode & kModeBits,
                .group_writes = (facts.st_mode & S_IWGRP) != 0,
                .others_write = (facts.st_mode & S_IWOTH) != 0,
                .grants = {},
                .has_unread_acl = false};
  if (part.kind == PathPart::Kind::Link) return part;
  add_acl(part, read_acl(path.c_str()));
  return part;
}

void push_names(std::deque<std::string>& names, std::string_view path) {
  std::vector<std::string> found;
  while (!path.empty()) {
    const auto name = path.substr(0, path.find('/'));
    if (!name.empty() && name != ".") found.emplace_back(name);
    path.remove_prefix(std::min(path.size(), name.size() + 1));
  }
  names.insert(names.begin(), found.begin(), found.end());
}

std::string above(const std::string& path) {
  return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
}

class Judge {
 public:
  Judge(const PathFacts& facts, const std::string& trust_group) : facts_(facts) {
    for (const auto& [id, group] : facts.groups)
      if (!trust_group.empty() && group.name == trust_group) trusted_ = id;
  }

  bool knows_trusted_group() const { return trusted_.has_value(); }

  /// `is_above`: what is looked for lies in it.
  std::optional<Distrust> of(const PathPart& part, bool is_above) const {
    if (!is_trusted_user(part.owner)) {
      return refusal(
          part, user_text(part.owner) + could(part, is_above),
          "use a place of your own, or ask for one that belongs to root",
          trusted_ ? "" : ", or name a group that you share with its owner: 'trust_group: NAME'");
    }
    if (part.kind == PathPart::Kind::Link) return std::nullopt;
    if (is_above && (part.mode & S_ISVTX) != 0) return std::nullopt;
    if (part.others_write) {
      return refusal(part, "everybody" + could(part, is_above), "run: chmod o-w " + part.path);
    }
    std::optional<Distrust> worst;
    for (const Grant& grant : part.grants) {
      auto found = of_grant(part, grant, is_above);
      if (found && (!worst || found->is_refusal)) worst = std::move(found);
    }
    if (worst || !part.group_writes) return worst;
    if (part.has_unread_acl) {
      worst = refusal(part, "those whom its ACL names" + could(part, is_above),
                      "see `getfacl " + part.path + "`, which is not installed where it lies");
      worst->is_refusal = part.kind != PathPart::Kind::Folder;
      return worst;
    }
    if (is_trusted_group(part.group)) return std::nullopt;
    return of_group(part, part.group, is_above, "run: chmod g-w " + part.path);
  }

 private:
  const Account* account(uid_t user) const {
    const auto at = facts_.accounts.find(user);
    return at == facts_.accounts.end() ? nullptr : &at->second;
  }

  bool is_trusted_user(uid_t user) const {
    if (user == 0 || user == facts_.user) return true;
    const Account* const who = account(user);
    if (!trusted_ || !who) return false;
    const auto& members = facts_.groups.at(*trusted_).members;
    return who->first_group == *trusted_ ||
           std::find(members.begin(), members.end(), who->name) != members.end();
  }

  bool is_trusted_group(gid_t id) const {
    const auto group = facts_.groups.find(id);
    if (group == facts_.groups.end()) return false;
    return id == trusted_ || is_of_alone(id, group->second, facts_.user) ||
           is_of_alone(id, group->second, 0);
  }

  bool is_of_alone(gid_t id, const Group& group, uid_t user) const {
    const Account* const who = account(user);
    return who && who->first_group == id && who->name == group.name &&
           std::all_of(group.members.begin(), group.members.end(),
                       [&](const std::string& member) { return member == who->name; });
  }

  std::optional<Distrust> of_grant(const PathPart& part, const Grant& grant, bool is_above) const {
    const std::string id = std::to_string(grant.id);
    if (!grant.is_group) {
      if (is_trusted_user(grant.id)) return std::nullopt;
      return refusal(part, "by an ACL " + user_text(grant.id) + could(part, is_above),
                     "run: setfacl -x u:" + id + " " + part.path);
    }
    if (is_trusted_group(grant.id)) return std::nullopt;
    return of_group(part, grant.id, is_above, "run: setfacl -x g:" + id + " " + part.path);
  }

  std::optional<Distrust> of_group(const PathPart& part, gid_t group, bool is_above,
                                   const std::string& remedy) const {
    const auto known = facts_.groups.find(group);
    const bool has_name = known != facts_.groups.end();
    const std::string name =
        has_name ? known->second.name : "number " + std::to_string(group) + " (it has no name)";
    auto found = refusal(part, "the members of group " + name + could(part, is_above), remedy,
                         has_name ? ", or trust them: 'trust_group: " + name + "'" : "");
    found.is_refusal = part.kind != PathPart::Kind::Folder;
    return found;
  }

  std::string user_text(uid_t user) const {
    const Account* const who = account(user);
    return "user " + std::to_string(user) + (who ? " (" + who->name + ")" : "");
  }

  static std::string could(const PathPart& part, bool is_above) {
    if (part.kind == PathPart::Kind::Link) return " could lead it elsewhere";
    if (part.kind == PathPart::Kind::File) return " could write into it what you then obey or run";
    return is_above ? " could rename what lies in it and put something else there"
                    : " could put files there that you then obey or run";
  }

  Distrust refusal(const PathPart& part, const std::string& danger, const std::string& remedy,
                   const std::string& group_hint = {}) const {
    std::array<char, 8> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", static_cast<unsigned>(part.mode & kModeBits));
    return {.is_refusal = true,
            .path = part.path,
            .text = part.path + " (of " + user_text(part.owner) + ", mode " + mode.data() +
                    "): " + danger + "; " + remedy,
            .group_hint = group_hint};
  }

  const PathFacts& facts_;
  std::optional<gid_t> trusted_;
};

std::optional<Distrust> distrust_of_kind(const PathPart& last, Wanted wanted) {
  const bool is_wanted = wanted == Wanted::File ? last.kind == PathPart::Kind::File
                                                : last.kind == PathPart::Kind::Folder;
  if (is_wanted) return std::nullopt;
  return Distrust{true, last.path,
                  last.path + (wanted == Wanted::File ? " is not a regular file; name one"
                                                      : " is not a folder; name one"),
                  ""};
}

}  // namespace

std::vector<AclEntry> parse_acl(std::string_view bytes) {
  constexpr std::size_t kHead = 4;
  std::vector<AclEntry> entries;
  unsigned mask = 7;
  for (bytes.remove_prefix(std::min(kHead, bytes.size())); bytes.size() >= sizeof(AclEntry);
       bytes.remove_prefix(sizeof(AclEntry))) {
    AclEntry entry{};
    std::memcpy(&entry, bytes.data(), sizeof entry);
    if (entry.tag == AclEntry::Mask) mask = entry.rights;
    entries.push_back(entry);
  }
  for (AclEntry& entry : entries) {
    if (entry.tag == AclEntry::User || entry.tag == AclEntry::OwnGroup ||
        entry.tag == AclEntry::NamedGroup)
      entry.rights = static_cast<std::uint16_t>(entry.rights & mask);
  }
  return entries;
}

std::vector<AclEntry> read_acl(const char* path) {
  std::vector<char> bytes(kLargestAcl);
  const ssize_t size = ::getxattr(path, "system.posix_acl_access", bytes.data(), bytes.size());
  if (size <= 0) return {};
  return parse_acl({bytes.data(), static_cast<std::size_t>(size)});
}

void add_acl(PathPart& part, const std::vector<AclEntry>& acl) {
  constexpr unsigned kWrite = 2;
  for (const AclEntry& entry : acl) {
    const bool writes = (entry.rights & kWrite) != 0;
    if (entry.tag == AclEntry::OwnGroup)
      part.group_writes = writes;  // the mode's bits are the mask
    if ((entry.tag == AclEntry::User || entry.tag == AclEntry::NamedGroup) && writes)
      part.grants.push_back({entry.tag == AclEntry::NamedGroup, entry.id});
  }
}

void end_walk(PathFacts& facts, const std::string& at) {
  facts.is_whole = true;
  const auto last = std::find_if(facts.parts.rbegin(), facts.parts.rend(),
                                 [&](const PathPart& part) { return part.path == at; });
  if (last != facts.parts.rbegin() && last != facts.parts.rend())
    facts.parts.push_back(PathPart(*last));
}

PathFacts walk_path(const std::string& path, uid_t user) {
  PathFacts facts;
  facts.user = user;
  const auto stop = [&facts](const std::string& at, std::string why) {
    facts.trouble_at = at;
    facts.trouble = std::move(why);
    return facts;
  };
  if (!path.starts_with('/')) return stop(path, "it is not an absolute path");
  std::deque<std::string> names;
  push_names(names, path);
  std::string at = "/";
  struct stat status {};
  if (::lstat("/", &status) != 0) return stop("/", std::strerror(errno));
  facts.parts.push_back(part_of(at, status));
  int links = 0;
  while (!names.empty()) {
    const std::string name = std::move(names.front());
    names.pop_front();
    if (name == "..") {
      at = above(at);
      continue;
    }
    const std::string next = (at == "/" ? "" : at) + "/" + name;
    if (::lstat(next.c_str(), &status) != 0) {
      if (errno == ENOENT) return facts;
      return stop(next, std::strerror(errno));
    }
    facts.parts.push_back(part_of(next, status));
    if (!S_ISLNK(status.st_mode)) {
      at = next;
      if (!names.empty() && !S_ISDIR(status.st_mode)) return stop(next, std::strerror(ENOTDIR));
      continue;
    }
    std::array<char, PATH_MAX> target;
    const ssize_t size = ::readlink(next.c_str(), target.data(), target.size());
    if (size <= 0) return stop(next, std::strerror(errno));
    if (++links > kMostLinks) return stop(next, std::strerror(ELOOP));
    if (target.front() == '/') at = "/";
    push_names(names, {target.data(), static_cast<std::size_t>(size)});
  }
  end_walk(facts, at);
  return facts;
}

std::optional<Distrust> distrust(const PathFacts& facts, Wanted wanted,
                                 const std::string& trust_group) {
  const Judge judge(facts, trust_group);
  if (!trust_group.empty() && !judge.knows_trusted_group()) {
    return Distrust{true, "",
                    "there is no group '" + trust_group +
                        "' there, which 'trust_group' names; `getent group` lists those there are",
                    ""};
  }
  std::optional<Distrust> said;
  for (const PathPart& part : facts.parts) {
    const bool is_above = &part != &facts.parts.back() || !facts.is_whole;
    auto found = judge.of(part, is_above);
    if (found && found->is_refusal) return found;
    if (found && !said) said = std::move(found);
  }
  if (!facts.trouble.empty()) {
    const std::string at = facts.trouble_at.empty() ? "" : facts.trouble_at + " cannot be used: ";
    return Distrust{true, facts.trouble_at,
                    at + facts.trouble + "; name a path whose every part is there or can be made",
                    ""};
  }
  if (facts.is_whole && !facts.parts.empty()) {
    if (auto odd = distrust_of_kind(facts.parts.back(), wanted)) return odd;
  }
  return said;
}

}  // namespace hpcbatch
