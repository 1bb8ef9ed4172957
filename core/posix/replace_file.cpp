#include "posix/replace_file.hpp"

#include "posix/write_all.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <ctime>

namespace hpcbatch {
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

}  // namespace hpcbatch
