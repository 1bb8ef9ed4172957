#include "posix/files.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {

std::optional<std::uint64_t> file_size_limit(pid_t process) {
  rlimit limit{};
  if (::prlimit(process, RLIMIT_FSIZE, nullptr, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return limit.rlim_cur;
}

int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd ready{descriptor, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

namespace {

/// `take` returns errno.
template <class Take>
int take_all(int descriptor, const Take& take) {
  std::vector<char> room(std::size_t{1} << 18);
  for (;;) {
    const ssize_t got = ::read(descriptor, room.data(), room.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0 ? errno : 0;
    if (const int error = take(std::string_view(room.data(), static_cast<std::size_t>(got))))
      return error;
  }
}

}  // namespace

int read_all(int descriptor, std::string& text) {
  return take_all(descriptor, [&](std::string_view piece) {
    text += piece;
    return 0;
  });
}

int copy_all(int from, int to) {
  return take_all(from, [&](std::string_view piece) { return write_all(to, piece); });
}

namespace {

struct Place {
  std::string folder;  ///< with its slash; empty: none
  std::string name;
};

Place place_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

/// Two writers of one file do not meet, nor does one who finds what another left.
std::string name_beside(const Place& place, bool hidden) {
  std::uint64_t number = 0;
  // Kernels before 3.17 do not know it.
  if (::getrandom(&number, sizeof number, 0) != sizeof number) {
    static std::atomic<std::uint64_t> count{0};
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    number = (static_cast<std::uint64_t>(::getpid()) << 40) ^
             (static_cast<std::uint64_t>(now.tv_sec) << 20) ^
             static_cast<std::uint64_t>(now.tv_nsec) ^ (count++ << 56);
  }
  char digits[24];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return place.folder + (hidden ? ".hpcbatch-" : place.name + ".") + digits + ".tmp";
}

int write_and_rename(int folder, const std::string& aside, const std::string& name,
                     std::string_view bytes, const Replacement& how, Fd& file, bool keep_open) {
  if (const int error = write_all(file.get(), bytes); error != 0) return error;
  if (how.against_umask && ::fchmod(file.get(), how.mode) != 0) return errno;
  // NFS may tell of a full disk only here, or when the file is closed.
  if (how.sync && ::fsync(file.get()) != 0) return errno;
  if (!keep_open && ::close(file.release()) != 0) return errno;
  return ::renameat(folder, aside.c_str(), folder, name.c_str()) == 0 ? 0 : errno;
}

int sync_folder(int folder, const Place& place) {
  const std::string name = place.folder.empty() ? "." : place.folder;
  const Fd opened(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) return errno;
  // Some file systems cannot sync a folder and say EINVAL; they have nothing to sync.
  return ::fsync(opened.get()) == 0 || errno == EINVAL ? 0 : errno;
}

}  // namespace

int replace_file(int folder, const std::string& name, std::string_view bytes,
                 const Replacement& how, Fd* file) {
  const Place place = place_of(name);
  const std::string aside = name_beside(place, how.hidden);
  Fd opened(::openat(folder, aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                     how.mode));
  if (!opened) return errno;
  if (const int error = write_and_rename(folder, aside, name, bytes, how, opened, file != nullptr);
      error != 0) {
    ::unlinkat(folder, aside.c_str(), 0);
    return error;
  }
  if (how.sync_folder) {
    if (const int error = sync_folder(folder, place); error != 0) return error;
  }
  if (file != nullptr) *file = std::move(opened);
  return 0;
}

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
