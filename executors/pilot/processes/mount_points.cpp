#include "pilot/processes/mount_points.hpp"

#include "posix/fd.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>

namespace hpcbatch::pilot {
namespace {

constexpr mode_t kFolderMode = 0755;
constexpr mode_t kFileMode = 0644;

bool make_last(const Fd& folder, const std::string& name, bool is_folder) {
  struct stat info {};
  if (::fstatat(folder.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (is_folder) return ::mkdirat(folder.get(), name.c_str(), kFolderMode) == 0 || errno == EEXIST;
  const Fd made(::openat(folder.get(), name.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  return made || errno == EEXIST;
}

}  // namespace

bool make_mount_point(const std::string& image, const std::string& path, bool is_folder) {
  Fd folder(::open(image.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (std::size_t at = 0; folder;) {
    const std::size_t begin = path.find_first_not_of('/', at);
    if (begin == std::string::npos) return true;
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    const bool is_last = path.find_first_not_of('/', end) == std::string::npos;
    if (name == "..") {
      errno = EINVAL;
      return false;
    }
    if (!make_last(folder, name, !is_last || is_folder)) return false;
    if (is_last) return true;
    Fd next(::openat(folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next && (errno == ELOOP || errno == ENOTDIR)) return true;
    folder = std::move(next);
    at = end;
  }
  return false;
}

}  // namespace hpcbatch::pilot
