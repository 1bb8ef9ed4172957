#include "pilot/site/file_store.hpp"

#include "pilot/base/files.hpp"
#include "posix/files.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

wire::FileTrouble kind_of(int error) {
  switch (error) {
    case ENOENT:
      return wire::FileTrouble::Absent;
    case ENOSPC:
      return wire::FileTrouble::DiskFull;
    case EDQUOT:
      return wire::FileTrouble::Quota;
    case ENOTDIR:
    case ELOOP:
    case EISDIR:
    case kNotRegular:
    case ENAMETOOLONG:
      return wire::FileTrouble::Refused;
    default:
      return wire::FileTrouble::Other;
  }
}

std::variant<Fd, FileRefusal> walk(int root, const std::string& path, bool make) {
  constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Fd at(::openat(root, ".", kFolder));
  if (!at) return refused("open the workspace", errno);
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string step = path.substr(begin, end - begin);
    Fd next(::openat(at.get(), step.c_str(), kFolder));
    if (!next && errno == ENOENT && make) {
      if (::mkdirat(at.get(), step.c_str(), 0700) != 0 && errno != EEXIST)
        return refused("make " + path.substr(0, end), errno);
      next = Fd(::openat(at.get(), step.c_str(), kFolder));
    }
    if (!next) {
      const int error = errno;
      struct stat facts {};
      const bool is_link = ::fstatat(at.get(), step.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
                           S_ISLNK(facts.st_mode);
      return refused("open " + path.substr(0, end), is_link ? ELOOP : error);
    }
    at = std::move(next);
    begin = end + 1;
  }
  return at;
}

}  // namespace

FileRefusal refused(const std::string& what, int error) {
  return {kind_of(error), "cannot " + what + ": " + why_not_regular(error)};
}

std::variant<Fd, FileRefusal> enter(int root, const std::string& path) {
  return walk(root, path, false);
}

std::variant<Fd, FileRefusal> enter_or_make(int root, const std::string& path) {
  return walk(root, path, true);
}

Step last_step(const std::string& path) {
  const std::size_t at = path.rfind('/');
  if (at == std::string::npos) return {"", path};
  return {path.substr(0, at), path.substr(at + 1)};
}

namespace {

constexpr std::time_t kStale = std::time_t{24} * 60 * 60;
constexpr int kLockPause = 50;
// So many files wait for the disk once, not each by itself.
constexpr int kSyncedTogether = 64;

using wire::FileTrouble;

mode_t mode_of(bool executable) {
  return executable ? 0500 : 0400;
}

FileRefusal no_key() {
  return {FileTrouble::Refused, "it is no key of the store"};
}

/// A name of its own in the folder of what is being written.
std::string aside_name() {
  static unsigned count = 0;
  return "aside-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

/// Nothing where it is not there, or not as it is to be.  `in`: its folder.
Fd open_entry(int in, const std::string& name, std::uint64_t size, struct stat& facts) {
  RegularFile file = open_regular(in, name);
  facts = file.facts;
  return file && file.size() == size ? std::move(file.fd) : Fd();
}

bool use(int in, const std::string& name, std::uint64_t size, bool executable) {
  struct stat facts {};
  const Fd fd = open_entry(in, name, size, facts);
  if (!fd) return false;
  if (executable && (facts.st_mode & S_IXUSR) == 0) ::fchmod(fd.get(), mode_of(true));
  ::futimens(fd.get(), nullptr);
  return true;
}

/// What stands in its place and is no file would refuse to be replaced.
bool move_into(int from, const std::string& name, int to, const std::string& new_name) {
  if (::renameat(from, name.c_str(), to, new_name.c_str()) == 0) return true;
  return errno == EISDIR && remove_entry(to, new_name) &&
         ::renameat(from, name.c_str(), to, new_name.c_str()) == 0;
}

/// A file that is being written; without `finish` nothing of it stays.
class Aside {
 public:
  explicit Aside(int folder) : folder_(folder) {}
  Aside(Aside&& other) noexcept
      : folder_(other.folder_), name_(std::move(other.name_)), fd_(std::move(other.fd_)) {
    other.name_.clear();
  }
  ~Aside() {
    if (!name_.empty()) ::unlinkat(folder_, name_.c_str(), 0);
  }

  FileOutcome write(const wire::FilesOrder::Put& file) {
    const std::string what = "write " + wire::place_of_key(file.key());
    name_ = aside_name();
    RegularFile opened = open_regular(folder_, name_, O_WRONLY | O_CREAT | O_TRUNC);
    if (!opened) return refused(what, opened.error);
    fd_ = std::move(opened.fd);
    const std::string& data = file.data();
    for (std::size_t done = 0; done < data.size();) {
      const ssize_t count = ::write(fd_.get(), data.data() + done, data.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return refused(what, errno);
      done += static_cast<std::size_t>(count);
    }
    // The disk begins with all of them before the first is waited for.
    if (!data.empty()) ::sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
    return {};
  }

  FileOutcome finish(const wire::FilesOrder::Put& file, int to, bool is_synced) {
    const std::string what = "write " + wire::place_of_key(file.key());
    // Before Linux 5.8 syncfs tells of no errors.
    const auto sync = [&] {
      return is_synced ? ::sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE)
                       : ::fsync(fd_.get());
    };
    if (::fchmod(fd_.get(), mode_of(file.executable())) != 0 || sync() != 0)
      return refused(what, errno);
    if (!move_into(folder_, name_, to, last_step(file.key()).name)) return refused(what, errno);
    name_.clear();
    return {};
  }

 private:
  int folder_;
  std::string name_;
  Fd fd_;
};

std::vector<std::string> names_in(int folder, std::size_t length) {
  std::vector<std::string> names;
  Fd own(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(own ? ::fdopendir(own.get()) : nullptr,
                                                      ::closedir);
  if (!directory) return names;
  own.release();
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == ".." || (length > 0 && name.size() != length)) continue;
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// When anything of it was changed last.
std::time_t newest(int folder, const std::string& name) {
  struct stat facts {};
  if (::fstatat(folder, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  std::time_t newest = facts.st_mtime;
  if (!S_ISDIR(facts.st_mode)) return newest;
  const auto inside = enter(folder, name);
  if (const Fd* fd = std::get_if<Fd>(&inside)) {
    for (const std::string& file : names_in(fd->get(), 0)) {
      if (::fstatat(fd->get(), file.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0)
        newest = std::max(newest, facts.st_mtime);
    }
  }
  return newest;
}

}  // namespace

std::variant<FileStore, FileRefusal> FileStore::open(int workspace) {
  auto files = enter_or_make(workspace, "files");
  if (auto* refusal = std::get_if<FileRefusal>(&files)) return *refusal;
  auto incoming = enter_or_make(std::get<Fd>(files).get(), "incoming");
  if (auto* refusal = std::get_if<FileRefusal>(&incoming)) return *refusal;
  return FileStore(workspace, std::move(std::get<Fd>(files)), std::move(std::get<Fd>(incoming)));
}

bool FileStore::lock(const std::function<bool()>& still_time) {
  lock_ = open_regular(files_.get(), "lock", O_RDWR | O_CREAT).fd;
  while (lock_ && ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    // Some file systems know no locks: what they would keep out is rare.
    if (errno != EWOULDBLOCK && errno != EINTR) return true;
    if (!still_time()) return false;
    ::poll(nullptr, 0, kLockPause);
  }
  return true;
}

FileOutcome FileStore::have(const wire::FilesOrder::Known& file) const {
  if (!wire::is_store_key(file.key())) return no_key();
  const auto folder = enter(workspace_, wire::folder_of_key(file.key()));
  if (const auto* refusal = std::get_if<FileRefusal>(&folder)) return *refusal;
  if (use(std::get<Fd>(folder).get(), last_step(file.key()).name, file.size(), file.executable()))
    return {};
  return FileRefusal{FileTrouble::Absent, wire::place_of_key(file.key()) + " is not there"};
}

FileOutcome FileStore::adopt(const wire::FilesOrder::Known& file) const {
  if (!wire::is_store_key(file.key())) return no_key();
  if (!wire::is_store_key(file.received())) return no_key();
  const std::string what = "move " + wire::incoming_of_key(file.received()) + " to its place";
  const Step received = last_step(file.received());
  const std::string name = last_step(file.key()).name;
  auto folder = enter_or_make(workspace_, wire::folder_of_key(file.key()));
  if (const auto* refusal = std::get_if<FileRefusal>(&folder)) return *refusal;
  const int to = std::get<Fd>(folder).get();
  auto from = enter(incoming_.get(), received.folder);
  struct stat facts {};
  const Fd* aside = std::get_if<Fd>(&from);
  const Fd fd = aside ? open_entry(aside->get(), received.name, file.size(), facts) : Fd();
  if (!fd) {
    if (use(to, name, file.size(), file.executable())) return {};
    return FileRefusal{FileTrouble::Absent, "cannot " + what + ": it is not there, or not whole"};
  }
  if (::fchmod(fd.get(), mode_of(file.executable())) != 0 || ::fsync(fd.get()) != 0) {
    const FileRefusal refusal = refused(what, errno);
    // What the disk has lost still looks well, and another fsync would say so.
    ::unlinkat(aside->get(), received.name.c_str(), 0);
    return refusal;
  }
  ::futimens(fd.get(), nullptr);
  if (!move_into(aside->get(), received.name, to, name)) return refused(what, errno);
  ::unlinkat(incoming_.get(), received.folder.c_str(), AT_REMOVEDIR);
  return {};
}

std::vector<FileOutcome> FileStore::put(
    const google::protobuf::RepeatedPtrField<wire::FilesOrder::Put>& all, int begin,
    int end) const {
  std::vector<FileOutcome> outcomes;
  std::vector<std::optional<Aside>> asides;
  std::vector<Fd> folders;
  for (int at = begin; at < end; ++at) {
    const wire::FilesOrder::Put& file = all.Get(at);
    FileOutcome& outcome = outcomes.emplace_back();
    std::optional<Aside>& aside = asides.emplace_back();
    Fd& to = folders.emplace_back();
    if (!wire::is_store_key(file.key())) {
      outcome = no_key();
      continue;
    }
    auto folder = enter_or_make(workspace_, wire::folder_of_key(file.key()));
    if (const auto* refusal = std::get_if<FileRefusal>(&folder)) {
      outcome = *refusal;
      continue;
    }
    to = std::move(std::get<Fd>(folder));
    if (use(to.get(), last_step(file.key()).name, file.data().size(), file.executable())) continue;
    outcome = aside.emplace(incoming_.get()).write(file);
    if (outcome) aside.reset();
  }
  // The names themselves are not synced: one that a crash takes is missed, and sent again.
  const bool are_synced = end - begin >= kSyncedTogether && ::syncfs(incoming_.get()) == 0;
  for (std::size_t at = 0; at < asides.size(); ++at) {
    if (asides[at])
      outcomes[at] =
          asides[at]->finish(all.Get(begin + static_cast<int>(at)), folders[at].get(), are_synced);
  }
  return outcomes;
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
bool FileStore::list(const std::string& after, std::size_t most,
                     const std::function<bool()>& still_time,
                     google::protobuf::RepeatedPtrField<wire::FilesReport::Entry>& entries) const {
  const std::time_t now = std::time(nullptr);
  for (const std::string& prefix : names_in(files_.get(), 2)) {
    if (prefix < after.substr(0, 2)) continue;
    const auto hashes = enter(files_.get(), prefix);
    if (std::holds_alternative<FileRefusal>(hashes)) continue;
    const int in = std::get<Fd>(hashes).get();
    for (const std::string& hash : names_in(in, wire::kHashDigits)) {
      if (hash < after.substr(0, wire::kHashDigits)) continue;
      const auto folder = enter(in, hash);
      if (std::holds_alternative<FileRefusal>(folder)) continue;
      for (const std::string& name : names_in(std::get<Fd>(folder).get(), 0)) {
        const std::string key = wire::store_key(hash, name);
        struct stat facts {};
        if (key <= after || !wire::is_store_key(key) ||
            ::fstatat(std::get<Fd>(folder).get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(facts.st_mode))
          continue;
        const auto full = static_cast<std::size_t>(entries.size());
        if (full >= most || (full > 0 && !still_time())) return false;
        wire::FilesReport::Entry& entry = *entries.Add();
        entry.set_key(key);
        entry.set_size(static_cast<std::uint64_t>(facts.st_size));
        entry.set_unused_s(
            static_cast<std::uint64_t>(std::max<std::time_t>(0, now - facts.st_mtime)));
        entry.set_executable((facts.st_mode & S_IXUSR) != 0);
      }
    }
  }
  return true;
}

void FileStore::forget_stale() const {
  const std::time_t now = std::time(nullptr);
  for (const std::string& name : names_in(incoming_.get(), 0)) {
    if (newest(incoming_.get(), name) < now - kStale) remove_entry(incoming_.get(), name);
  }
}

}  // namespace hpcbatch::pilot
