#include "dropbox/transfer.hpp"

#include "posix/write_all.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

namespace hpcbatch {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

Result<void> copy_by_hand(int from, int to) {
  std::vector<char> buffer(kPiece);
  while (true) {
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("reading");
    if (got == 0) return {};
    auto written = write_content(to, {buffer.data(), static_cast<std::size_t>(got)});
    if (!written) return written;
  }
}

/// The bytes from `at` to `end`, in both files at the same place.
Result<void> copy_range(int from, int to, off_t at, off_t end) {
  while (at < end) {
    off_t there = at;
    const auto left = static_cast<std::size_t>(end - at);
    const ssize_t done = ::copy_file_range(from, &at, to, &there, std::min(left, kMostAtOnce), 0);
    if (done > 0 || (done < 0 && errno == EINTR)) continue;
    break;  // some file systems cannot, and some answer 0 for a file that is not empty
  }
  std::vector<char> buffer(at < end ? kPiece : 0);
  while (at < end) {
    const auto left = static_cast<std::size_t>(end - at);
    const ssize_t got = ::pread(from, buffer.data(), std::min(left, buffer.size()), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("reading");
    if (got == 0) return {};  // it was cut off meanwhile; who copies looks again
    if (::lseek(to, at, SEEK_SET) < 0) return errno_error("writing");
    if (auto written = write_content(to, {buffer.data(), static_cast<std::size_t>(got)}); !written)
      return written;
    at += got;
  }
  return {};
}

}  // namespace

Error errno_error(const std::string& what) {
  const int code = errno;
  const bool may_pass = code == ENOSPC || code == EDQUOT || code == EIO || code == EMFILE ||
                        code == ENFILE || code == ENOMEM || code == ESTALE || code == EAGAIN;
  return Error{may_pass ? Error::Kind::Transient : Error::Kind::Rejected,
               fmt::format("{}: {}", what, std::strerror(code))};
}

Result<void> write_content(int to, std::string_view text) {
  errno = write_all(to, text);
  if (errno != 0) return errno_error("writing");
  return {};
}

Result<void> copy_content(int from, int to) {
  if (::ioctl(to, FICLONE, from) == 0) return {};
  struct stat status {};
  if (::fstat(from, &status) != 0) return errno_error("reading");
  for (off_t at = 0; at < status.st_size;) {
    off_t data = ::lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // a hole up to its end
    off_t hole = data < 0 ? -1 : ::lseek(from, data, SEEK_HOLE);
    if (hole < 0) {  // the file system tells none
      data = at;
      hole = status.st_size;
    }
    if (auto copied = copy_range(from, to, data, hole); !copied) return copied;
    at = hole;
  }
  if (::ftruncate(to, status.st_size) != 0) return errno_error("writing");
  // What came meanwhile, and files that are longer than they say.
  if (::lseek(from, status.st_size, SEEK_SET) < 0 || ::lseek(to, status.st_size, SEEK_SET) < 0)
    return errno_error("reading");
  return copy_by_hand(from, to);
}

bool rename_to_nothing(int directory, const std::string& from, const std::string& to) {
  if (::renameat2(directory, from.c_str(), directory, to.c_str(), RENAME_NOREPLACE) == 0)
    return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  if (::linkat(directory, from.c_str(), directory, to.c_str(), 0) == 0)
    return ::unlinkat(directory, from.c_str(), 0) == 0;
  if (errno == EEXIST) return false;
  struct stat status {};
  if (::fstatat(directory, to.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    errno = EEXIST;
    return false;
  }
  return ::renameat(directory, from.c_str(), directory, to.c_str()) == 0;
}

}  // namespace hpcbatch
