#include "local_file.hpp"

#include "checksum.hpp"
#include "local_paths.hpp"

#include <cerrno>
#include <ctime>
#include <filesystem>

#include <fcntl.h>

namespace hpcbatch {
namespace {

namespace fs = std::filesystem;
constexpr const char* kPrefix = ".hpcbatch-part-";
constexpr std::time_t kStale{86400};  // a day
constexpr std::uint64_t kWrittenTogether = 16u << 20;

Result<std::string> read_at(int file, const std::string& path, std::uint64_t offset,
                            std::size_t length) {
  std::string text(length, '\0');
  std::size_t done = 0;
  while (done < length) {
    const ssize_t n =
        ::pread(file, text.data() + done, length - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return local_error("read " + path, errno);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  text.resize(done);
  return text;
}

/// What was given up and will not be asked for again.
void remove_stale(const fs::path& directory, const std::string& but) {
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    struct stat facts {};
    if (!name.starts_with(kPrefix) || name == but || ::lstat(at->path().c_str(), &facts) != 0)
      continue;
    if (S_ISREG(facts.st_mode) && facts.st_mtime < std::time(nullptr) - kStale)
      ::unlink(at->path().c_str());
  }
}

}  // namespace

Result<SourceFile> SourceFile::open(const std::string& path) {
  // Never hangs on a pipe that somebody put where a file is expected.
  Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat facts {};
  if (file.get() < 0 || ::fstat(file.get(), &facts) != 0) return local_error("read " + path, errno);
  if (!S_ISREG(facts.st_mode))
    return Error{Error::Kind::Rejected, "cannot read " + path + ": it is no regular file"};
  return SourceFile(path, std::move(file), facts);
}

Result<std::string> SourceFile::read(std::uint64_t offset, std::size_t length) const {
  return read_at(file_.get(), path_, offset, length);
}

Result<void> SourceFile::unchanged() const {
  struct stat now {};
  if (::fstat(file_.get(), &now) != 0) return local_error("read " + path_, errno);
  if (now.st_size == facts_.st_size && now.st_mtim.tv_sec == facts_.st_mtim.tv_sec &&
      now.st_mtim.tv_nsec == facts_.st_mtim.tv_nsec)
    return {};
  return Error{Error::Kind::Transient,
               "cannot copy " + path_ + ": it was changed while it was being read"};
}

std::string SourceFile::mark() const {
  std::string text = path_;
  for (const auto number :
       {static_cast<std::uint64_t>(facts_.st_dev), static_cast<std::uint64_t>(facts_.st_ino),
        size(), static_cast<std::uint64_t>(facts_.st_mtim.tv_sec),
        static_cast<std::uint64_t>(facts_.st_mtim.tv_nsec)})
    text += " " + std::to_string(number);
  return text;
}

Result<TargetFile> TargetFile::open(const Copy& file, const std::string& mark) {
  const fs::path directory = fs::path(file.to).parent_path();
  if (auto made = make_directories(directory); !made) return made.error();
  const std::string name = kPrefix + sha256_of(file.to + '\0' + mark).substr(0, 24);
  remove_stale(directory.empty() ? "." : directory, name);
  const std::string aside = (directory / name).string();
  Fd fd(::open(aside.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  struct stat facts {};
  if (fd.get() < 0 || ::fstat(fd.get(), &facts) != 0)
    return local_error("write " + aside + " (for " + file.to + ")", errno);
  if (!S_ISREG(facts.st_mode))
    return Error{Error::Kind::Rejected, "cannot write " + aside + ": it is no regular file"};
  return TargetFile(file, aside, std::move(fd), static_cast<std::uint64_t>(facts.st_size));
}

Result<void> TargetFile::cut(std::uint64_t size) {
  if (::ftruncate(file_.get(), static_cast<off_t>(size)) != 0)
    return local_error("write " + copy_.to, errno);
  size_ = size;
  return {};
}

Result<void> TargetFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return local_error("write " + copy_.to, errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
    size_ += static_cast<std::uint64_t>(n);
  }
  // Else all of it would be waited for at the end.
  if (size_ >= on_its_way_ + kWrittenTogether) {
    ::sync_file_range(file_.get(), static_cast<off_t>(on_its_way_),
                      static_cast<off_t>(size_ - on_its_way_), SYNC_FILE_RANGE_WRITE);
    on_its_way_ = size_;
  }
  return {};
}

Result<std::string> TargetFile::read(std::uint64_t offset, std::size_t length) const {
  return read_at(file_.get(), copy_.to, offset, length);
}

Result<void> TargetFile::publish() {
  if (::fchmod(file_.get(), copy_.mode) != 0 || ::fsync(file_.get()) != 0 ||
      ::rename(aside_.c_str(), copy_.to.c_str()) != 0)
    return local_error("write " + copy_.to, errno);
  const fs::path directory = fs::path(copy_.to).parent_path();
  const Fd parent(
      ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a directory and say EINVAL; they have nothing to sync.
  if (parent.get() < 0 || (::fsync(parent.get()) != 0 && errno != EINVAL))
    return local_error("sync " + directory.string(), errno);
  return {};
}

void TargetFile::discard() const {
  ::unlink(aside_.c_str());
}

}  // namespace hpcbatch
