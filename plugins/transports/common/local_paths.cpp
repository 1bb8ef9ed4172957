#include "local_paths.hpp"

#include <cerrno>
#include <cstring>

#include <sys/stat.h>

namespace hpcbatch {

Error local_error(const std::string& what, int error) {
  const bool ours_to_mend = error == EACCES || error == EPERM || error == ENOENT ||
                            error == ENOTDIR || error == EISDIR || error == EROFS ||
                            error == ENAMETOOLONG || error == ELOOP;
  return {ours_to_mend ? Error::Kind::Rejected : Error::Kind::Transient,
          "cannot " + what + ": " + std::strerror(error)};
}

Result<void> make_directories(const std::filesystem::path& directory) {
  if (directory.empty() || ::mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST) return {};
  if (errno != ENOENT) return local_error("make directory " + directory.string(), errno);
  if (auto parent = make_directories(directory.parent_path()); !parent) return parent;
  if (::mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return local_error("make directory " + directory.string(), errno);
}

}  // namespace hpcbatch
