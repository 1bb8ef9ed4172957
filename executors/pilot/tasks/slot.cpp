#include "pilot/tasks/slot.hpp"

#include "pilot/base/log_line.hpp"
#include "wire/key.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <cerrno>
#include <cstring>

namespace hpcbatch::pilot {
namespace {

// A directory whose last change is said to have been then has not been changed since it was made.
constexpr timespec kUntouched{1, 0};

}  // namespace

void Slot::clean_temporary(Removals& removals) {
  struct stat info {};
  if (::lstat(temporary.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode) && info.st_mtim.tv_sec == kUntouched.tv_sec) return;
    const std::string aside = temporary + "." + wire::to_hex(wire::random_key()).substr(0, 12);
    if (::rename(temporary.c_str(), aside.c_str()) == 0) removals.add(aside);
  }
  if (::mkdir(temporary.c_str(), 0700) != 0) {
    log_line("cannot make " + temporary + ": " + std::strerror(errno));
    return;
  }
  const timespec times[2] = {kUntouched, kUntouched};
  ::utimensat(AT_FDCWD, temporary.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

}  // namespace hpcbatch::pilot
