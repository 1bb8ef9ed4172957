#include "pilot/base/remove_tree.hpp"

#include "posix/fd.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <cerrno>
#include <cstring>

namespace hpcbatch::pilot {
namespace {

bool empty(int parent, const char* name) {
  Fd fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd && errno == EACCES) {
    // A task may leave directories that not even their owner may list.
    ::fchmodat(parent, name, 0700, 0);
    fd = Fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!fd) return false;
  struct stat info {};
  if (::fstat(fd.get(), &info) == 0 && (info.st_mode & 0700) != 0700) ::fchmod(fd.get(), 0700);
  DIR* dir = ::fdopendir(fd.get());
  if (dir == nullptr) return false;
  const int self = fd.release();  // closedir closes it
  bool all = true;
  while (const dirent* entry = ::readdir(dir)) {
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    if (::unlinkat(self, entry->d_name, 0) == 0 || errno == ENOENT) continue;
    const bool removed =
        empty(self, entry->d_name) && ::unlinkat(self, entry->d_name, AT_REMOVEDIR) == 0;
    all = removed && all;
  }
  ::closedir(dir);
  return all;
}

}  // namespace

bool remove_entry(int parent, const std::string& name) {
  if (::unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return true;
  if (errno != EISDIR && errno != EPERM) return false;
  return empty(parent, name.c_str()) && ::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0;
}

bool empty_tree(const std::string& path) {
  return empty(AT_FDCWD, path.c_str());
}

bool remove_tree(const std::string& path) {
  return (empty_tree(path) && ::rmdir(path.c_str()) == 0) || errno == ENOENT;
}

}  // namespace hpcbatch::pilot
