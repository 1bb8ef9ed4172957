#include "pilot/site/safe_path.hpp"

#include "posix/regular_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>

namespace hpcbatch::pilot {
namespace {

wire::FileTrouble kind_of(int error) {
  switch (error) {
    case ENOENT:
      return wire::FileTrouble::Absent;
    case ENOSPC:
      return wire::FileTrouble::DiskFull;
    case EDQUOT:
      return wire::FileTrouble::Quota;
    case ENOTDIR:
    case ELOOP:
    case EISDIR:
    case kNotRegular:
    case ENAMETOOLONG:
      return wire::FileTrouble::Refused;
    default:
      return wire::FileTrouble::Other;
  }
}

std::variant<Fd, FileRefusal> walk(int root, const std::string& path, bool make) {
  constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Fd at(::openat(root, ".", kFolder));
  if (!at) return refused("open the workspace", errno);
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string step = path.substr(begin, end - begin);
    Fd next(::openat(at.get(), step.c_str(), kFolder));
    if (!next && errno == ENOENT && make) {
      if (::mkdirat(at.get(), step.c_str(), 0700) != 0 && errno != EEXIST)
        return refused("make " + path.substr(0, end), errno);
      next = Fd(::openat(at.get(), step.c_str(), kFolder));
    }
    if (!next) {
      const int error = errno;
      struct stat facts {};
      const bool is_link = ::fstatat(at.get(), step.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
                           S_ISLNK(facts.st_mode);
      return refused("open " + path.substr(0, end), is_link ? ELOOP : error);
    }
    at = std::move(next);
    begin = end + 1;
  }
  return at;
}

}  // namespace

FileRefusal refused(const std::string& what, int error) {
  return {kind_of(error), "cannot " + what + ": " + why_not_regular(error)};
}

std::variant<Fd, FileRefusal> enter(int root, const std::string& path) {
  return walk(root, path, false);
}

std::variant<Fd, FileRefusal> enter_or_make(int root, const std::string& path) {
  return walk(root, path, true);
}

Step last_step(const std::string& path) {
  const std::size_t at = path.rfind('/');
  if (at == std::string::npos) return {"", path};
  return {path.substr(0, at), path.substr(at + 1)};
}

}  // namespace hpcbatch::pilot
