#include "wire/whole_file.hpp"

#include "posix/files.hpp"

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
  const RegularFile file = open_regular(AT_FDCWD, path, O_RDONLY, Links::Followed);
  const struct stat& info = file.facts;
  if (file.error == kNotRegular)
    return Error{Error::Kind::Rejected, path + " is not a regular file"};
  if (!file) return failed("open", path, file.error);
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
  RegularText read = read_regular(file, kLargestFile);
  if (read.error == EFBIG) return Error{Error::Kind::Rejected, path + " has more than 1 GiB"};
  if (!read) return failed("read", path, read.error);
  return std::move(read.text);
}

hpcbatch::Result<void> replace_file(const std::string& path, std::string_view bytes,
                                    Readers readers, bool sync) {
  const mode_t mode = readers == Readers::OwnerOnly ? 0600 : 0666;
  const int error = hpcbatch::replace_file(AT_FDCWD, path, bytes, {.mode = mode, .sync = sync});
  if (error != 0) return failed("write", path, error);
  return {};
}

}  // namespace hpcbatch::wire
