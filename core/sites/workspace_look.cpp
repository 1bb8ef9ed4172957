#include "sites/workspace_look.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include <sys/stat.h>

namespace hpcbatch {
namespace {

// As walk_path (posix/trusted_path.cpp) does it, in what every login node has; what it found is judged
// here.  A name that holds a line's end could say lines of its own, so it is told as trouble.  The last
// line says that nothing was cut off.
constexpr const char* kLook = R"sh(me=$(id -u) || exit 1
end='
'
users=" 0 $me "
groups=" "
say() { printf '%s\n' "$*"; }
read_acl() {
  getfacl -cnp -- "$1" 2>/dev/null && return
  python3 -c 'import os, struct, sys
entries = list(struct.iter_unpack("<HHI", os.getxattr(sys.argv[1], "system.posix_acl_access")[4:]))
mask = next((rights for tag, rights, id in entries if tag == 16), 7)
for tag, rights, id in entries:
    kind = {2: "user:%d:" % id, 4: "group::", 8: "group:%d:" % id}.get(tag)
    if kind: print(kind + ("-w-" if rights & mask & 2 else "---"))' "$1" 2>/dev/null || echo unread
}
tell() {
  case $1 in *"$end"*) say 'trouble a name on its way holds a line end|'; return 1 ;; esac
  facts=$(stat -c '%f %u %g' -- "$1") || { say "trouble cannot be looked at|$1"; return 1; }
  say part "$facts" "$1"
  owner=${facts#* }
  case $users in *" ${owner% *} "*) ;; *) users="$users${owner% *} " ;; esac
  case $groups in *" ${owner#* } "*) ;; *) groups="$groups${owner#* } " ;; esac
  [ ! -L "$1" ] || return 0
  case $(ls -ld -- "$1") in ??????????+*) ;; *) return 0 ;; esac
  acl=$(read_acl "$1")
  say "$acl" | sed -n '/./s/^/acl /p'
  for id in $(say "$acl" | sed -n 's/^\(user\|group\):\([0-9][0-9]*\):.*/\1\2/p'); do
    case $id in user*) users="$users${id#user} " ;; group*) groups="$groups${id#group} " ;; esac
  done
}
walk() {
  at=$1
  rest=$2
  links=0
  [ "$at" ] || tell / || return 0
  while [ "$rest" ]; do
    name=${rest%%/*}
    case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
    case $name in '' | .) continue ;; ..) at=${at%/*}; continue ;; esac
    next=$at/$name
    if [ ! -e "$next" ] && [ ! -L "$next" ]; then
      [ -x "${at:-/}" ] || say "trouble cannot be looked at|$next"
      echo absent
      return 0
    fi
    tell "$next" || return 0
    if [ -L "$next" ]; then
      links=$((links + 1))
      [ $links -le 40 ] || { say "trouble leads in a circle|$next"; return 0; }
      to=$(readlink -- "$next")
      case $to in /*) at= ;; esac
      rest=$to/$rest
    else
      at=$next
      [ -d "$next" ] || [ ! "$rest" ] || { say "trouble is not a folder|$next"; return 0; }
    fi
  done
  say whole "${at:-/}"
}
echo look
walk '' "$1"
inside=$at
for part in allocations logs outbox work bin; do
  [ -e "$1/$part" ] || [ -L "$1/$part" ] || continue
  echo look
  walk "$inside" "$part"
done
echo me $me
for id in $users; do say account "$(getent passwd "$id")"; done
for id in $groups; do say group "$(getent group "$id")"; done
[ ! "$2" ] || say group "$(getent group "$2")"
bare=yes
for part in allocations logs outbox work bin; do [ ! -e "$1/$part" ] || bare=; done
[ ! "$bare" ] || echo bare
at=$1
while [ ! -e "$at" ] && [ "$at" != / ]; do at=$(dirname "$at"); done
echo file_system $(stat -f -c '%T %i' "$at" 2>/dev/null)
echo looked)sh";

/// The next piece up to `end`, which is taken off too.
std::string_view next_of(std::string_view& text, char end) {
  const std::string_view piece = text.substr(0, text.find(end));
  text.remove_prefix(std::min(text.size(), piece.size() + 1));
  return piece;
}

unsigned number(std::string_view text, int base = 10) {
  unsigned value = ~0U;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

PathPart part_of(std::string_view words) {
  PathPart part;
  const unsigned mode = number(next_of(words, ' '), 16);
  part.kind = S_ISDIR(mode)   ? PathPart::Kind::Folder
              : S_ISREG(mode) ? PathPart::Kind::File
              : S_ISLNK(mode) ? PathPart::Kind::Link
                              : PathPart::Kind::Other;
  part.mode = mode & 07777U;
  part.group_writes = (mode & S_IWGRP) != 0;
  part.others_write = (mode & S_IWOTH) != 0;
  part.owner = number(next_of(words, ' '));
  part.group = number(next_of(words, ' '));
  part.path = words;
  return part;
}

/// A line of getfacl(1), which says what the mask leaves where that is less.
void add_acl_line(PathPart& part, std::string_view line) {
  const std::string_view kind = next_of(line, ':');
  if (kind == "unread") part.has_unread_acl = true;
  const std::string_view id = next_of(line, ':');
  const auto effective = line.find("#effective:");
  if (effective != std::string_view::npos) line.remove_prefix(effective + 11);
  const bool writes = line.substr(0, 3).find('w') != std::string_view::npos;
  if (kind == "group" && id.empty()) part.group_writes = writes;
  if (writes && !id.empty()) part.grants.push_back({kind == "group", number(id)});
}

/// Of passwd(5).
void add_account(std::string_view line, std::map<uid_t, Account>& accounts) {
  const std::string_view name = next_of(line, ':');
  next_of(line, ':');
  const unsigned user = number(next_of(line, ':'));
  if (!name.empty()) accounts[user] = {std::string(name), number(next_of(line, ':'))};
}

/// Of group(5).
void add_group(std::string_view line, std::map<gid_t, Group>& groups) {
  const std::string_view name = next_of(line, ':');
  next_of(line, ':');
  const unsigned id = number(next_of(line, ':'));
  if (name.empty()) return;
  Group group{std::string(name), {}};
  while (!line.empty()) group.members.emplace_back(next_of(line, ','));
  groups[id] = std::move(group);
}

/// Kind and number, or of one in memory the kind alone.
std::string_view lasting(std::string_view file_system) {
  const std::string_view kind = file_system.substr(0, file_system.find(' '));
  return kind == "tmpfs" || kind == "ramfs" ? kind : file_system;
}

void add_line(PathFacts& path, std::string_view word, std::string_view line) {
  if (word == "part") path.parts.push_back(part_of(line));
  if (word == "acl" && !path.parts.empty()) add_acl_line(path.parts.back(), line);
  if (word == "whole") end_walk(path, std::string(line));
  if (word == "trouble") {
    path.trouble = next_of(line, '|');
    path.trouble_at = line;
  }
}

}  // namespace

CommandLine look_at_workspace(const std::string& workspace, const std::string& trust_group) {
  return {
      .argv = {"sh", "-c", kLook, "sh", workspace, trust_group}, .environment = {}, .input = {}};
}

std::optional<WorkspaceFinding> read_workspace(const CommandOutput& output) {
  WorkspaceFinding finding;
  std::map<uid_t, Account> accounts;
  std::map<gid_t, Group> groups;
  unsigned user = ~0U;
  bool is_all = false;
  std::string_view rest = output.standard_output;
  while (!rest.empty()) {
    std::string_view line = next_of(rest, '\n');
    const std::string_view word = next_of(line, ' ');
    is_all = word == "looked";
    if (word == "look") finding.paths.emplace_back();
    if (word == "bare") finding.is_bare = true;
    if (word == "file_system") finding.file_system = line;
    if (word == "me") user = number(line);
    if (word == "account") add_account(line, accounts);
    if (word == "group") add_group(line, groups);
    if (!finding.paths.empty()) add_line(finding.paths.back(), word, line);
  }
  if (!is_all) return std::nullopt;
  for (PathFacts& path : finding.paths) {
    path.user = user;
    path.accounts = accounts;
    path.groups = groups;
  }
  return finding;
}

std::optional<Distrust> distrust(const WorkspaceFinding& finding, const std::string& trust_group) {
  std::optional<Distrust> said;
  for (const PathFacts& path : finding.paths) {
    auto found = distrust(path, Wanted::Folder, trust_group);
    if (found && found->is_refusal) return found;
    if (found && !said) said = std::move(found);
  }
  return said;
}

std::optional<std::string> refusal_of_bare(const WorkspaceFinding& finding,
                                           const std::string& before,
                                           const std::string& workspace) {
  if (!finding.is_bare || before.empty() || finding.file_system.empty()) return std::nullopt;
  if (lasting(finding.file_system) == lasting(before)) return std::nullopt;
  return fmt::format(
      "nothing is left of the workspace {0}, and it would be on another file system than before; "
      "is "
      "that not mounted? Where it is to be made anew, say so by 'mkdir -p {0}/outbox' there",
      workspace);
}

}  // namespace hpcbatch
