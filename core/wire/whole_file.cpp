#include "wire/whole_file.hpp"

#include "posix/fd.hpp"
#include "posix/replace_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace hpcbatch::wire {
namespace {

constexpr std::size_t kLargestFile = std::size_t{1} << 30;

Error failed(const std::string& what, const std::string& path, int error,
             Error::Kind kind = Error::Kind::Transient) {
  return Error{kind, "cannot " + what + " " + path + ": " + std::strerror(error)};
}

}  // namespace

hpcbatch::Result<std::string> read_file(const std::string& path, Readers readers) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return failed("open", path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return failed("look at", path, errno);
  if (!S_ISREG(info.st_mode)) {
    return Error{Error::Kind::Rejected, path + " is not a regular file"};
  }
  if (readers == Readers::OwnerOnly) {
    if (info.st_uid != ::geteuid()) {
      return Error{Error::Kind::Rejected, path + " belongs to user " + std::to_string(info.st_uid) +
                                              ", not to us (" + std::to_string(::geteuid()) +
                                              "); it holds a key and is not used"};
    }
    if ((info.st_mode & 077) != 0) {
      return Error{Error::Kind::Rejected,
                   path + " can be opened by others; it holds a key and is not used (chmod 600 " +
                       path + ")"};
    }
  }
  std::string bytes;
  for (;;) {
    constexpr std::size_t kStep = std::size_t{64} << 10;
    const std::size_t before = bytes.size();
    if (before > kLargestFile) return Error{Error::Kind::Rejected, path + " has more than 1 GiB"};
    bytes.resize(before + kStep);
    const ssize_t got = ::read(fd.get(), bytes.data() + before, kStep);
    const int error = errno;
    bytes.resize(before + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got < 0 && error == EINTR) continue;
    if (got < 0) return failed("read", path, error);
    if (got == 0) return bytes;
  }
}

hpcbatch::Result<void> replace_file(const std::string& path, std::string_view bytes,
                                    Readers readers, bool sync) {
  const mode_t mode = readers == Readers::OwnerOnly ? 0600 : 0666;
  const int error = hpcbatch::replace_file(AT_FDCWD, path, bytes, {.mode = mode, .sync = sync});
  if (error != 0) return failed("write", path, error);
  return {};
}

}  // namespace hpcbatch::wire
