#include "files.hpp"

#include "../common/local_paths.hpp"
#include "../common/process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <random>

#include <fcntl.h>
#include <sys/stat.h>

namespace hpcbatch {
namespace {

namespace fs = std::filesystem;

Error too_late(const std::string& what) {
  return {Error::Kind::Transient, "cannot " + what + ": its deadline passed"};
}

/// A file that is written under another name in the same directory; without `publish` nothing of it
/// stays.
class NewFile {
 public:
  explicit NewFile(std::string path) : path_(std::move(path)) {}
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (fd_.get() >= 0) ::unlink(aside_.c_str());
  }

  Result<void> open() {
    const fs::path directory = fs::path(path_).parent_path();
    if (auto made = make_directories(directory); !made) return made;
    std::random_device random;
    aside_ =
        (directory / (".hpcbatch-" + std::to_string(random()) + std::to_string(random()))).string();
    fd_ = Fd(::open(aside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (fd_.get() < 0) return local_error("write " + aside_ + " (for " + path_ + ")", errno);
    return {};
  }

  Result<void> append(const char* data, std::size_t size) {
    while (size > 0) {
      const ssize_t n = ::write(fd_.get(), data, size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return local_error("write " + path_, errno);
      data += n;
      size -= static_cast<std::size_t>(n);
    }
    return {};
  }

  Result<void> publish(std::uint32_t mode) {
    if (::fchmod(fd_.get(), mode) != 0 || ::fsync(fd_.get()) != 0 ||
        ::rename(aside_.c_str(), path_.c_str()) != 0) {
      return local_error("write " + path_, errno);
    }
    fd_.reset();
    const fs::path directory = fs::path(path_).parent_path();
    const Fd parent(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Some file systems cannot sync a directory and say EINVAL; they have nothing to sync.
    if (parent.get() < 0 || (::fsync(parent.get()) != 0 && errno != EINVAL)) {
      return local_error("sync " + directory.string(), errno);
    }
    return {};
  }

 private:
  std::string path_;
  std::string aside_;
  Fd fd_;
};

/// Never hangs on a pipe or a device that somebody put where a file is expected.
Result<Fd> open_regular(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) return local_error("read " + path, errno);
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return local_error("read " + path, errno);
  if (!S_ISREG(facts.st_mode)) {
    return Error{Error::Kind::Rejected, "cannot read " + path + ": it is no regular file"};
  }
  return file;
}

}  // namespace

Result<void> copy_whole(const Copy& file, Deadline deadline) {
  auto from = open_regular(file.from);
  if (!from) return from.error();
  NewFile to(file.to);
  if (auto opened = to.open(); !opened) return opened;
  std::array<char, 1 << 17> buffer;
  for (;;) {
    if (std::chrono::steady_clock::now() >= deadline)
      return too_late("copy " + file.from + " to " + file.to);
    const ssize_t n = ::read(from->get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return local_error("read " + file.from, errno);
    if (n == 0) return to.publish(file.mode);
    if (auto written = to.append(buffer.data(), static_cast<std::size_t>(n)); !written)
      return written;
  }
}

Result<void> write_whole(const FileText& file, Deadline deadline) {
  if (std::chrono::steady_clock::now() >= deadline) return too_late("write " + file.path);
  NewFile to(file.path);
  if (auto opened = to.open(); !opened) return opened;
  if (auto written = to.append(file.text.data(), file.text.size()); !written) return written;
  return to.publish(file.mode);
}

Result<std::string> read_part(const std::string& path, std::uint64_t offset, std::uint64_t length,
                              Deadline deadline) {
  auto file = open_regular(path);
  if (!file) return file.error();
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (text.size() < length) {
    if (std::chrono::steady_clock::now() >= deadline) return too_late("read " + path);
    const auto wanted = std::min<std::uint64_t>(buffer.size(), length - text.size());
    const ssize_t n =
        ::pread(file->get(), buffer.data(), wanted, static_cast<off_t>(offset + text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return local_error("read " + path, errno);
    if (n == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return text;
}

Result<std::vector<std::string>> names_in(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator entries(directory, error);
  if (error == std::errc::no_such_file_or_directory) return names;
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    names.push_back(entries->path().filename().string());
  }
  if (error) return local_error("list " + directory, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

void make_writable(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(fs::symlink_status(path, ignored))) return;
  fs::permissions(path, fs::perms::owner_all, fs::perm_options::add, ignored);
  for (auto at = fs::recursive_directory_iterator(path, ignored);
       !ignored && at != fs::recursive_directory_iterator(); at.increment(ignored)) {
    std::error_code unchanged;
    if (!fs::is_directory(at->symlink_status(unchanged))) continue;
    fs::permissions(at->path(), fs::perms::owner_all, fs::perm_options::add, unchanged);
  }
}

}  // namespace

Result<void> remove_all(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);  // a link is removed, never followed
  if (error == std::errc::permission_denied) {
    // Programs leave folders that even their owner may not write to.
    make_writable(path);
    fs::remove_all(path, error);
  }
  if (error) return local_error("remove " + path, error.value());
  return {};
}

}  // namespace hpcbatch
