// Files that others may see, change or replace at the same time; and descriptors that end with
// their owner.
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace hpcbatch {

// A file descriptor that is closed by its owner's end.

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_{-1};
};

// The limit on how large a file a process may write (ulimit -f, RLIMIT_FSIZE in getrlimit(2)).

/// In bytes; no value: there is none, or the process is not to be asked.  0: this process.
std::optional<std::uint64_t> file_size_limit(pid_t process = 0);

// All of a text to a descriptor.

/// Blocks until all is written, also where the descriptor does not block.  Returns errno, 0 for
/// success.
int write_all(int descriptor, std::string_view text);

// The same the other way, to the end of what is there.  Returns errno, 0 for success.

int read_all(int descriptor, std::string& text);
int copy_all(int from, int to);

// A file that whoever reads it sees as it was or as it is to be, and never half.

struct Replacement {
  mode_t mode{0600};
  bool against_umask{false};  ///< exactly this mode, whatever the umask is
  bool hidden{false};         ///< until it is whole: its name begins with a dot
  bool sync{true};            ///< the bytes survive a power loss, or the file is not there
  bool sync_folder{false};    ///< the name too
};

/// Writes the bytes beside `name` and renames.  `folder` is a descriptor, or AT_FDCWD.
/// What is half written is removed again; of one who is killed meanwhile a file whose name ends
/// with `.tmp` is left.  Returns errno, 0 for success; `file` then is open for writing, where it is
/// given.
int replace_file(int folder, const std::string& name, std::string_view bytes,
                 const Replacement& how, Fd* file = nullptr);

// A file at whose name somebody else may have put anything: a FIFO, a device, a link, a terabyte.  Only a regular file is opened,
// without waiting for anybody, and no more of it is read than was said.

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
