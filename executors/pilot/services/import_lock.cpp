#include "pilot/services/import_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace hpcbatch::pilot {
namespace {

/// FNV-1a, 64 bits: the same in every build.
std::uint64_t sum_of(const std::string& text) {
  std::uint64_t sum = 0xcbf29ce484222325ULL;
  for (const char letter : text) {
    sum ^= static_cast<unsigned char>(letter);
    sum *= 0x100000001b3ULL;
  }
  return sum;
}

std::string lock_path(const std::string& folder, const std::string& what) {
  char name[64];
  std::snprintf(name, sizeof name, "/hpcbatch-import-%u-%016llx",
                static_cast<unsigned>(::geteuid()), static_cast<unsigned long long>(sum_of(what)));
  return folder + name;
}

bool is_ours_and_at(int file, const std::string& path) {
  struct stat opened {};
  struct stat there {};
  return ::fstat(file, &opened) == 0 && S_ISREG(opened.st_mode) && opened.st_uid == ::geteuid() &&
         ::lstat(path.c_str(), &there) == 0 && there.st_dev == opened.st_dev &&
         there.st_ino == opened.st_ino;
}

}  // namespace

bool ImportLock::begin(const std::string& folder, const std::string& what) {
  end();
  const std::string path = lock_path(folder, what);
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!file) return true;
  // Another user's file is nothing to wait for.
  if (!is_ours_and_at(file.get(), path)) return true;
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  // Whoever had it may have removed it meanwhile.
  if (!is_ours_and_at(file.get(), path)) return false;
  lock_ = std::move(file);
  path_ = path;
  return true;
}

void ImportLock::end() {
  if (!lock_) return;
  ::unlink(path_.c_str());
  lock_.reset();
}

}  // namespace hpcbatch::pilot
