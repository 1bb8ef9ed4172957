#include "sites/workspace_files.hpp"

#include "posix/files.hpp"
#include "wire/checksum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>

namespace hpcbatch {
namespace {

namespace fs = std::filesystem;

/// Standard input is what the files are to hold, one behind the other; four words tell each: mode, size,
/// SHA-256 and path.  Old programs can only sync everything.
constexpr const char* kWrite = R"sh(umask 077
trap 'rm -f -- "$aside"' EXIT
while [ $# -gt 0 ]; do
  folder=${4%/*} aside=${4%/*}/.hpcbatch-part-$$-$#
  mkdir -p -- "$folder" || exit 1
  [ ! -d "$4" ] || { echo "$4: Is a directory" >&2; exit 1; }
  head -c "$2" > "$aside" || exit 1
  if command -v sha256sum >/dev/null; then
    said=$(sha256sum < "$aside") is=${said%% *} wanted=$3
  else
    is=$(($(wc -c < "$aside"))) wanted=$2
  fi
  [ "$is" = "$wanted" ] || { echo "$4: what arrived is not what was sent" >&2; exit 1; }
  chmod "$1" "$aside" && { sync -- "$aside" 2>/dev/null || sync; } && mv -f -- "$aside" "$4" || exit 1
  sync -- "$folder" 2>/dev/null
  shift 4
done)sh";

/// A pipe or a device in its place would hang.
constexpr const char* kRead = R"sh([ ! -e "$1" ] || [ -f "$1" ] ||
  { echo "$1: it is no regular file" >&2; exit 1; }
exec <"$1" || exit 1
tail -c "+$2" | head -c "$3")sh";

/// Programs leave folders that even their owner may not write to.
constexpr const char* kRemove = R"sh(rm -rf -- "$@" 2>/dev/null && exit
find "$@" -type d -exec chmod u+rwx {} \; 2>/dev/null
rm -rf -- "$@")sh";

constexpr std::uint64_t kReadAtATime = std::uint64_t{32} << 20;
constexpr std::size_t kRemovedAtATime = 500;

bool is_here(const Transport& transport) {
  return dynamic_cast<const SharedFileSystem*>(&transport) != nullptr;
}

/// A person has to mend it, or it passes.
Error::Kind kind_of(const std::string& said) {
  static constexpr std::array kOursToMend{
      "Permission denied", "Operation not permitted", "No such file",       "Not a directory",
      "Is a directory",    "Read-only file system",   "File name too long", "Too many levels",
      "no regular file",   "refusing to remove",      "File exists",        "irectory nonexistent"};
  const bool is_ours = std::any_of(kOursToMend.begin(), kOursToMend.end(), [&](const char* words) {
    return said.find(words) != std::string::npos;
  });
  return is_ours ? Error::Kind::Rejected : Error::Kind::Transient;
}

Error cannot(const std::string& what, const std::string& why) {
  return {kind_of(why), fmt::format("cannot {}: {}", what, why)};
}
Error cannot(const std::string& what, int error) {
  return cannot(what, why_not_regular(error));
}

Error too_late(const std::string& what) {
  return {Error::Kind::Transient, fmt::format("cannot {}: its deadline passed", what)};
}

/// What it says; an error in one line where it fails.
Result<CommandOutput> run_script(Transport& transport, const std::string& what, const char* script,
                                 const std::vector<std::string>& words, std::string input,
                                 Deadline deadline) {
  if (std::chrono::steady_clock::now() >= deadline) return too_late(what);
  CommandLine command{
      .argv = {"sh", "-c", script, "sh"}, .environment = {}, .input = std::move(input)};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  auto output = transport.run(command, deadline);
  if (!output) return output.error();
  if (output->timed_out) return too_late(what);
  if (output->exit_code == 0) return output;
  std::string said = output->standard_error.substr(0, 500);
  while (said.ends_with('\n')) said.pop_back();
  std::replace(said.begin(), said.end(), '\n', ';');
  return cannot(what, said.empty() ? "the far side did not say why" : said);
}

Result<void> make_folders(const fs::path& folder) {
  if (folder.empty() || ::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
  if (errno != ENOENT) return cannot("make directory " + folder.string(), errno);
  if (auto above = make_folders(folder.parent_path()); !above) return above;
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return cannot("make directory " + folder.string(), errno);
}

Result<void> write_here(const FileText& file) {
  if (auto made = make_folders(fs::path(file.path).parent_path()); !made) return made;
  const Replacement how{.mode = static_cast<mode_t>(file.mode),
                        .against_umask = true,
                        .hidden = true,
                        .sync_folder = true};
  const int error = replace_file(AT_FDCWD, file.path, file.text, how);
  if (error != 0) return cannot("write " + file.path, error);
  return {};
}

Result<std::string> read_here(const std::string& path, std::uint64_t offset, std::uint64_t length,
                              Deadline deadline) {
  const RegularFile file = open_regular(AT_FDCWD, path, O_RDONLY, Links::Followed);
  if (!file) return cannot("read " + path, file.error);
  std::string text;
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  while (text.size() < length) {
    if (std::chrono::steady_clock::now() >= deadline) return too_late("read " + path);
    const std::size_t begin = text.size();
    text.resize(begin + std::min(kPiece, length - begin));
    const ssize_t got = ::pread(file.fd.get(), text.data() + begin, text.size() - begin,
                                static_cast<off_t>(offset + begin));
    const int error = errno;
    text.resize(begin + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got < 0 && error != EINTR) return cannot("read " + path, error);
    if (got == 0) break;
  }
  return text;
}

void make_writable(const std::string& path) {
  std::error_code ignored;
  const auto open_up = [&](const fs::path& folder) {
    if (fs::is_directory(fs::symlink_status(folder, ignored)))
      fs::permissions(folder, fs::perms::owner_all, fs::perm_options::add, ignored);
  };
  open_up(path);
  for (auto at = fs::recursive_directory_iterator(path, ignored);
       !ignored && at != fs::recursive_directory_iterator(); at.increment(ignored))
    open_up(at->path());
}

Result<void> remove_here(const std::vector<std::string>& paths) {
  Result<void> all;
  for (const std::string& path : paths) {
    std::error_code error;
    fs::remove_all(path, error);
    if (error == std::errc::permission_denied) {
      make_writable(path);
      fs::remove_all(path, error);
    }
    if (error) all = cannot("remove " + path, error.value());
  }
  return all;
}

Result<std::vector<std::string>> list_here(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator entries(directory, error);
  if (error == std::errc::no_such_file_or_directory) return names;
  for (; !error && entries != fs::directory_iterator(); entries.increment(error))
    names.push_back(entries->path().filename().string());
  if (error) return cannot("list " + directory, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

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

Result<void> write_files(Transport& transport, const std::vector<FileText>& files,
                         Deadline deadline) {
  if (files.empty()) return {};
  const std::string what = "write " + files.front().path + (files.size() > 1 ? " and others" : "");
  if (is_here(transport)) {
    if (std::chrono::steady_clock::now() >= deadline) return too_late(what);
    for (const FileText& file : files) {
      if (auto written = write_here(file); !written) return written;
    }
    return {};
  }
  std::vector<std::string> words;
  std::string input;
  for (const FileText& file : files) {
    const std::vector<std::string> told{fmt::format("{:o}", file.mode),
                                        std::to_string(file.text.size()),
                                        wire::sha256_of(file.text), file.path};
    words.insert(words.end(), told.begin(), told.end());
    input += file.text;
  }
  const auto done = run_script(transport, what, kWrite, words, std::move(input), deadline);
  if (!done) return done.error();
  return {};
}

Result<std::string> read_part(Transport& transport, const std::string& path, std::uint64_t offset,
                              std::uint64_t length, Deadline deadline) {
  if (is_here(transport)) return read_here(path, offset, length, deadline);
  auto output =
      run_script(transport, "read " + path, kRead,
                 {path, std::to_string(offset + 1), std::to_string(length)}, {}, deadline);
  if (!output) return output.error();
  // The exit code is the last program's; the one that reads may have failed.
  if (!output->standard_error.empty()) return cannot("read " + path, output->standard_error);
  return std::move(output->standard_output);
}

Result<std::string> read_whole(Transport& transport, const std::string& path, Deadline deadline) {
  std::string text;
  while (true) {
    const auto part = read_part(transport, path, text.size(), kReadAtATime, deadline);
    if (!part) return part.error();
    text += *part;
    if (part->size() < kReadAtATime) return text;
  }
}

Result<std::vector<std::string>> list_folder(Transport& transport, const std::string& directory,
                                             Deadline deadline) {
  if (is_here(transport)) return list_here(directory);
  const auto output = run_script(transport, "list " + directory,
                                 R"sh([ -e "$1" ] || [ ! -x "${1%/*}" ] || exit 0
exec find "$1/." -mindepth 1 -maxdepth 1 -print0)sh",
                                 {directory}, {}, deadline);
  if (!output) {
    if (output.error().text.find("No such file or directory") == std::string::npos)
      return output.error();
    return std::vector<std::string>();
  }
  std::vector<std::string> names;
  std::string_view rest = output->standard_output;
  while (!rest.empty()) {
    const std::string_view path = rest.substr(0, rest.find('\0'));
    names.emplace_back(path.substr(path.rfind('/') + 1));
    rest.remove_prefix(std::min(rest.size(), path.size() + 1));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<void> remove_files(Transport& transport, const std::vector<std::string>& all,
                          Deadline deadline) {
  std::vector<std::string> paths = all;
  // With a slash at its end a link would be followed.
  for (std::string& path : paths) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  }
  if (is_here(transport)) return remove_here(paths);
  for (std::size_t at = 0; at < paths.size(); at += kRemovedAtATime) {
    const std::vector<std::string> some(
        paths.begin() + static_cast<std::ptrdiff_t>(at),
        paths.begin() + static_cast<std::ptrdiff_t>(std::min(at + kRemovedAtATime, paths.size())));
    const auto done =
        run_script(transport, "remove " + some.front() + (some.size() > 1 ? " and others" : ""),
                   kRemove, some, {}, deadline);
    if (!done) return done.error();
  }
  return {};
}

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
