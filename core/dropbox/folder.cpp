#include "dropbox/folder.hpp"

#include "accounts/accounts.hpp"
#include "documents/texts.hpp"
#include "dropbox/job_folder.hpp"
#include "dropbox/job_rights.hpp"
#include "model/check.hpp"
#include "posix/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>

namespace hpcbatch {
namespace {

bool is_ours(std::string_view name) {
  // Hidden names are those of files that somebody is still writing.
  if (name.starts_with('.')) return false;
  return name.ends_with(kJobEnding) || name.ends_with(kSubmittedEnding) ||
         name.ends_with(kFinishedEnding);
}

/// Whether others than us and root can rename what lies there, or a folder above it.
bool can_be_swapped(const std::string& path) {
  PathFacts facts = walk_path(path, ::geteuid());
  if (!facts.is_whole) return true;
  facts.parts.pop_back();  // whose word the folder itself is, is another question (job_rights.hpp)
  facts.is_whole = false;
  add_accounts(facts, {});
  return distrust(facts, Wanted::Folder, {}).has_value();
}

}  // namespace

FileStamp stamp_of(const struct stat& status) {
  constexpr std::int64_t kNs = 1'000'000'000;
  return FileStamp{.inode = status.st_ino,
                   .changed_ns = status.st_ctim.tv_sec * kNs + status.st_ctim.tv_nsec,
                   .modified_ns = status.st_mtim.tv_sec * kNs + status.st_mtim.tv_nsec,
                   .size = status.st_size,
                   .owner = status.st_uid,
                   .mode = status.st_mode,
                   .group = status.st_gid,
                   .links = status.st_nlink};
}

std::optional<FileStamp> stamp_of(const Fd& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return std::nullopt;
  return stamp_of(status);
}

Result<DropboxFolder> DropboxFolder::open(const std::string& path) {
  Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return errno_error(fmt::format("cannot watch the drop box {}", path));
  DropboxFolder folder(std::move(directory));
  if (const std::string why = why_no_dropbox(folder.facts(), ::geteuid()); !why.empty())
    return Error{Error::Kind::Rejected, fmt::format("cannot use the drop box {}: {}", path, why)};
  return folder;
}

Result<std::vector<DropboxFolder::Entry>> DropboxFolder::list() const {
  // A descriptor of its own, so that each listing begins at the beginning.
  const int again = ::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return errno_error("cannot list the drop box");
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(again), ::closedir);
  if (!stream) {
    ::close(again);
    return errno_error("cannot list the drop box");
  }
  std::vector<Entry> entries;
  while (true) {
    errno = 0;
    const dirent* const found = ::readdir(stream.get());
    if (!found && errno != 0) return errno_error("cannot list the drop box");
    if (!found) break;
    if (!is_ours(found->d_name)) continue;
    if (const auto stamp = look(found->d_name)) entries.push_back({found->d_name, *stamp});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

std::optional<FileStamp> DropboxFolder::look(const std::string& name) const {
  struct stat status {};
  if (::fstatat(directory_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return std::nullopt;
  return stamp_of(status);
}

Result<DropboxFolder::Content> DropboxFolder::read(const std::string& name,
                                                   std::size_t most) const {
  const std::string what = "cannot read " + show_text(name, 120);
  Fd file(::openat(directory_.get(), name.c_str(),
                   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file) return errno_error(what);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return errno_error(what);
  const auto rejected = [&](std::string_view why) {
    return Error{Error::Kind::Rejected, fmt::format("{}: {}", what, why)};
  };
  if (!S_ISREG(status.st_mode)) return rejected("it is not a regular file");
  if (static_cast<std::size_t>(status.st_size) > most)
    return rejected(fmt::format("it is larger than {} bytes", most));
  Content content;
  content.stamp = stamp_of(status);
  std::string buffer(std::size_t{64} * 1024, '\0');
  while (true) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(what);
    if (got == 0) break;
    content.text.append(buffer.data(), static_cast<std::size_t>(got));
    if (content.text.size() > most)
      return rejected(fmt::format("it is larger than {} bytes", most));
  }
  content.is_steady = ::fstat(file.get(), &status) == 0 && stamp_of(status) == content.stamp;
  content.file = std::move(file);
  return content;
}

Readers readers_of(const FileStamp& job) {
  return {.mode = job.mode, .group = job.group};
}

Result<Fd> DropboxFolder::put(const std::string& name, std::string_view text,
                              const Readers& readers) const {
  Fd file;
  errno = replace_file(directory_.get(), name, text,
                       {.mode = 0600, .against_umask = true, .hidden = true}, &file);
  if (errno != 0) return errno_error("cannot write " + show_text(name, 120));
  // A group that all may be in reads nothing that others, and so all groups, may not.
  const bool all_read = (readers.mode & S_IRGRP) && (readers.mode & S_IROTH);
  const bool group_reads =
      (readers.mode & S_IRGRP) && ::fchown(file.get(), static_cast<uid_t>(-1), readers.group) == 0;
  const mode_t mode = all_read ? 0644 : group_reads ? 0640 : 0600;
  if (mode != 0600 && ::fchmod(file.get(), mode) != 0)
    return errno_error("cannot write " + show_text(name, 120));
  ::fsync(directory_.get());
  return file;
}

Result<void> DropboxFolder::rename(const std::string& from, const std::string& to) const {
  if (::renameat(directory_.get(), from.c_str(), directory_.get(), to.c_str()) != 0) {
    return errno_error(
        fmt::format("cannot rename {} to {}", show_text(from, 120), show_text(to, 120)));
  }
  return {};
}

Result<std::string> DropboxFolder::rename_to_free(const std::string& from,
                                                  const std::string& to) const {
  constexpr int kMostNames = 10'000;
  std::string name = to;
  for (int number = 2; look(name) && number < kMostNames; ++number)
    name = fmt::format("{}.{}", to, number);
  if (!rename_to_nothing(directory_.get(), from, name)) {
    return errno_error(
        fmt::format("cannot rename {} to {}", show_text(from, 120), show_text(name, 120)));
  }
  return name;
}

Result<void> DropboxFolder::remove(const std::string& name) const {
  if (::unlinkat(directory_.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    return errno_error("cannot remove " + show_text(name, 120));
  }
  return {};
}

FolderFacts DropboxFolder::facts() const {
  struct stat status {};
  // What cannot be looked at is nobody's.
  if (::fstat(directory_.get(), &status) != 0)
    return {.owner = UINT32_MAX, .mode = 0, .can_be_swapped = true};
  return {.owner = status.st_uid,
          .mode = status.st_mode,
          .can_be_swapped = can_be_swapped(real_path_of(directory_.get()))};
}

bool DropboxFolder::is_still(const std::string& path) const {
  struct stat ours {};
  struct stat named {};
  return ::fstat(directory_.get(), &ours) == 0 && ::stat(path.c_str(), &named) == 0 &&
         ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

FolderEvents::FolderEvents()
    : inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      bell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  HPCBATCH_CHECK(bell_);
}

bool FolderEvents::watch(const std::string& directory) {
  if (!inotify_) return false;
  if (watch_ >= 0) ::inotify_rm_watch(inotify_.get(), watch_);
  watch_ = ::inotify_add_watch(inotify_.get(), directory.c_str(),
                               IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE |
                                   IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
  return watch_ >= 0;
}

void FolderEvents::ring() {
  const std::uint64_t one = 1;
  // The counter cannot be full: nobody rings 2^64 times between two waits.
  [[maybe_unused]] const ssize_t written = ::write(bell_.get(), &one, sizeof one);
}

FolderEvents::Changes FolderEvents::wait(Duration at_most) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(at_most).count();
  std::array<pollfd, 2> sources{pollfd{bell_.get(), POLLIN, 0}, pollfd{inotify_.get(), POLLIN, 0}};
  ::poll(sources.data(), sources.size(),
         static_cast<int>(std::clamp<std::int64_t>(ms, 0, 3'600'000)));
  std::uint64_t rung = 0;
  [[maybe_unused]] const ssize_t cleared = ::read(bell_.get(), &rung, sizeof rung);

  Changes result;
  if (!inotify_) return result;
  alignas(inotify_event) std::array<char, std::size_t{64} * 1024> buffer{};
  while (true) {
    const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got <= 0) return result;
    for (const char* at = buffer.data(); at < buffer.data() + got;) {
      inotify_event event{};
      std::memcpy(&event, at, sizeof event);
      const char* const name = at + sizeof event;
      at = name + event.len;
      // The overflow is of no directory; other events may be of one that is no longer watched.
      if (event.wd != watch_ && !(event.mask & IN_Q_OVERFLOW)) continue;
      if (event.mask & (IN_Q_OVERFLOW | IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) {
        result.look_at_all = true;
      } else if (event.len > 0) {
        result.changes.push_back({name, (event.mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) != 0});
      }
    }
  }
}

}  // namespace hpcbatch
