#include "dropbox/transfer.hpp"

#include "posix/write_all.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

namespace hpcbatch {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

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
  while (true) {
    const ssize_t done = ::copy_file_range(from, nullptr, to, nullptr, std::size_t{1} << 30, 0);
    if (done > 0) continue;
    if (done == 0) break;
    if (errno == EINTR) continue;
    break;
  }
  // Some file systems cannot, and some answer 0 for a file that is not empty; what is left goes by
  // hand.
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
