// A file at whose name somebody else may have put anything: a FIFO, a device, a link, a terabyte.  Only a regular file is opened,
// without waiting for anybody, and no more of it is read than was said.
#pragma once

#include "posix/fd.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <string>

namespace hpcbatch {

enum class Links { Refused, Followed };

/// Which error says that something is there and is no regular file.
inline constexpr int kNotRegular = ENOTSUP;

struct RegularFile {
  Fd fd;
  struct stat facts {};
  int error{0};  ///< errno, ELOOP for a link, kNotRegular; 0: `fd` is open
  explicit operator bool() const { return error == 0; }
  std::uint64_t size() const { return static_cast<std::uint64_t>(facts.st_size); }
};

/// `folder`: a descriptor, or AT_FDCWD.  `flags` as of open(2), with mode 0600 for what is made.
/// What lies behind a link on the way to `name` is the caller's matter.  Any thread.
RegularFile open_regular(int folder, const std::string& name, int flags = O_RDONLY,
                         Links links = Links::Refused);

struct RegularText {
  std::string text;
  struct stat facts {};
  int error{0};  ///< as above; EFBIG: it has more than `most` bytes
  explicit operator bool() const { return error == 0; }
};

/// All of it.
RegularText read_regular(int folder, const std::string& name, std::size_t most,
                         Links links = Links::Refused);
/// All of what is open, from its start; kept are at most `most` bytes of it.
RegularText read_regular(const RegularFile& file, std::size_t most);

/// The error in words: "it is a link, which is not followed", "it is no regular file", else the system's.
std::string why_not_regular(int error);

}  // namespace hpcbatch
