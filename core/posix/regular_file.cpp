#include "posix/regular_file.hpp"

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace hpcbatch {
namespace {

constexpr std::size_t kStep = std::size_t{64} << 10;

/// What a socket, or a FIFO that nobody reads, answers to open(2) says nothing of what it is.
bool is_there_and_special(int folder, const std::string& name, Links links) {
  struct stat facts {};
  const int flags = links == Links::Refused ? AT_SYMLINK_NOFOLLOW : 0;
  return ::fstatat(folder, name.c_str(), &facts, flags) == 0 && !S_ISREG(facts.st_mode) &&
         !S_ISLNK(facts.st_mode);
}

}  // namespace

RegularFile open_regular(int folder, const std::string& name, int flags, Links links) {
  constexpr mode_t kOwnerOnly = 0600;
  const int no_link = links == Links::Refused ? O_NOFOLLOW : 0;
  RegularFile opened;
  // A name with a NUL byte in it is another name for the kernel.
  if (name.find('\0') != std::string::npos) {
    opened.error = EINVAL;
    return opened;
  }
  // O_NONBLOCK: of a FIFO nobody may ever hold the other end.  It means nothing for a regular file.
  opened.fd = Fd(::openat(folder, name.c_str(), flags | no_link | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                          kOwnerOnly));
  if (!opened.fd) {
    opened.error = errno;
    if (opened.error != ENOENT && opened.error != ELOOP &&
        is_there_and_special(folder, name, links))
      opened.error = kNotRegular;
  } else if (::fstat(opened.fd.get(), &opened.facts) != 0) {
    opened.error = errno;
  } else if (!S_ISREG(opened.facts.st_mode)) {
    opened.error = kNotRegular;
  }
  if (opened.error != 0) opened.fd.reset();
  return opened;
}

RegularText read_regular(const RegularFile& file, std::size_t most) {
  RegularText read;
  read.facts = file.facts;
  if (file.size() > most) {
    read.error = EFBIG;
    return read;
  }
  for (;;) {
    // It may grow while it is read, and what grows under /proc says that it has no bytes.
    const std::size_t before = read.text.size();
    read.text.resize(before + std::min(kStep, most + 1 - before));
    const ssize_t got = ::pread(file.fd.get(), read.text.data() + before, read.text.size() - before,
                                static_cast<off_t>(before));
    if (got < 0) read.error = errno;
    read.text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && read.error == EINTR) {
      read.error = 0;
      continue;
    }
    if (read.text.size() > most) read.error = EFBIG;
    if (got <= 0 || read.error != 0) return read;
  }
}

RegularText read_regular(int folder, const std::string& name, std::size_t most, Links links) {
  const RegularFile file = open_regular(folder, name, O_RDONLY, links);
  if (file) return read_regular(file, most);
  RegularText none;
  none.error = file.error;
  return none;
}

std::string why_not_regular(int error) {
  if (error == ELOOP) return "it is a link, which is not followed";
  if (error == kNotRegular) return "it is no regular file";
  return std::strerror(error);
}

}  // namespace hpcbatch
