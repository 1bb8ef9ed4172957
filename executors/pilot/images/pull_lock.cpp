#include "pilot/images/pull_lock.hpp"

#include "posix/fd.hpp"
#include "wire/key.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

namespace hpcbatch::pilot {
namespace {

constexpr time_t kSilence = 60;  // of a holder that is gone, in seconds

}  // namespace

PullLock::~PullLock() {
  if (is_held_) ::unlink(path_.c_str());
}

bool PullLock::take() {
  for (int round = 0; round < 2; ++round) {
    const Fd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file) {
      is_held_ = true;
      return true;
    }
    if (errno != EEXIST) return false;
    if (!is_given_up()) break;
    // Of several who see that it is given up, one moves it aside.
    const std::string aside = path_ + "." + wire::to_hex(wire::random_key()).substr(0, 12);
    if (::rename(path_.c_str(), aside.c_str()) == 0) ::unlink(aside.c_str());
  }
  errno = EEXIST;
  return false;
}

void PullLock::renew() const {
  ::utimensat(AT_FDCWD, path_.c_str(), nullptr, 0);
}

/// By the clock of whoever keeps the files: a file made now says what that shows.
bool PullLock::is_given_up() const {
  struct stat held {};
  if (::stat(path_.c_str(), &held) != 0) return errno == ENOENT;
  const std::string clock = path_ + ".clock." + wire::to_hex(wire::random_key()).substr(0, 12);
  const Fd file(::open(clock.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  struct stat now {};
  const bool is_known = file && ::fstat(file.get(), &now) == 0;
  ::unlink(clock.c_str());
  return is_known && now.st_mtime - held.st_mtime > kSilence;
}

}  // namespace hpcbatch::pilot
