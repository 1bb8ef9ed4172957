#include "posix/close_from.hpp"

#include <cstdlib>
#include <vector>

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hpcbatch {

void close_from(int first) {
  // Not glibc's function, which is newer than the oldest glibc that we run with.
  if (::syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0U) == 0) return;
  // Before Linux 5.9.  The limit of open files may be a thousand million: only what is there is closed.
  std::vector<int> open;
  DIR* const listed = ::opendir("/proc/self/fd");
  if (listed == nullptr) return;
  while (const dirent* entry = ::readdir(listed)) {
    const auto descriptor = static_cast<int>(std::strtol(entry->d_name, nullptr, 10));
    if (descriptor >= first) open.push_back(descriptor);
  }
  ::closedir(listed);
  for (const int descriptor : open) ::close(descriptor);
}

}  // namespace hpcbatch
