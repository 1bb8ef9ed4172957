// Whether a path can be trusted: whether nobody but its user and root can put something else there.
//
// One guard for all that we run, obey or keep secrets in: workspaces, the state directory, the
// configuration, plugins, tools, templates, caches, the folders of calls.  The rules, for every part
// of the path from / on, where each link is followed part by part:
//
//   part                   trusted                                       else
//   owner, links too       root, the user, a member of the trusted group refused
//   all may write          a sticky folder above                         refused
//   an ACL: a user writes  root, the user, a member of the trusted       refused
//                          group; a sticky folder above
//   a group may write      the group of root or of the user alone; the   folder: said, file: refused
//                          trusted group; a sticky folder above
//   the last part          of the wanted kind, or not there yet          refused
//
// "Above": what is looked for lies in it, or is to be made there; the last part itself gains nothing
// by a sticky bit, since others could put new names there.  A group is of one user alone where it is
// his first one, bears his name and lists nobody else.  The trusted group is what the user calls
// `trust_group`.  tests/posix/trusted_paths.json has the cases, which the Python twin is tried with
// too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace hpcbatch {

/// Somebody who may write by an ACL, beyond owner, group and others.
struct Grant {
  bool is_group{false};
  unsigned id{0};  ///< of a user or a group
};

struct PathPart {
  enum class Kind { Folder, File, Link, Other };
  std::string path;  ///< without links in what is above it
  Kind kind{Kind::Folder};
  uid_t owner{0};
  gid_t group{0};
  mode_t mode{0};  ///< the lowest twelve bits
  bool group_writes{false};
  bool others_write{false};
  std::vector<Grant> grants;
  bool has_unread_acl{false};  ///< nothing was there to read it with: `group_writes` is its mask
};

struct Account {
  std::string name;
  gid_t first_group{0};
};
struct Group {
  std::string name;
  std::vector<std::string> members;
};

/// What the guard decides by; found here or at a far site.
struct PathFacts {
  uid_t user{0};                ///< for whom
  std::vector<PathPart> parts;  ///< from / on, as the kernel passes them
  bool is_whole{false};  ///< the last part is what the path names; else the rest is not there
  std::string trouble;   ///< why nothing is known of what comes after the parts
  std::string trouble_at;
  std::map<uid_t, Account> accounts;  ///< of owners and of the user, as far as they are known
  std::map<gid_t, Group> groups;      ///< those that may write, and the trusted one
};

/// Looks at each part, here.  Accounts and groups are left to whoever may ask for them
/// (`accounts/accounts.hpp`).  Blocks on the file system; any thread.
PathFacts walk_path(const std::string& path, uid_t user);

/// All that the path names is there, and it ends at `at`: dots or a link to / may lead back to what
/// was passed before.  Pure.
void end_walk(PathFacts& facts, const std::string& at);

/// An entry of an ACL (acl(5)), as `system.posix_acl_access` has it.
struct AclEntry {
  enum Tag : std::uint16_t {
    Owner = 1,
    User = 2,
    OwnGroup = 4,
    NamedGroup = 8,
    Mask = 16,
    Others = 32
  };
  std::uint16_t tag;
  std::uint16_t rights;  ///< 4 read, 2 write, 1 search; the mask is taken off already
  std::uint32_t id;
};
/// Pure.
std::vector<AclEntry> parse_acl(std::string_view bytes);
/// Of what stands at a path, links followed; empty: it has none.
std::vector<AclEntry> read_acl(const char* path);

/// Adds what an ACL says to a part.  Pure.
void add_acl(PathPart& part, const std::vector<AclEntry>& acl);

enum class Wanted { Folder, File };

struct Distrust {
  bool is_refusal{false};  ///< else it is used, and said
  std::string path;        ///< the part that is the cause
  std::string
      text;  ///< a sentence: the path, its owner and mode, what another could do, what to do
  std::string group_hint;  ///< goes on with it where a group can be trusted by name
};

/// Nothing: trusted.  `trust_group`: its name; empty: none.  Pure.
std::optional<Distrust> distrust(const PathFacts& facts, Wanted wanted,
                                 const std::string& trust_group);

}  // namespace hpcbatch
