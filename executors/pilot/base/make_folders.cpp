#include "pilot/base/make_folders.hpp"

#include <sys/stat.h>
#include <cerrno>

namespace hpcbatch::pilot {

bool make_folders_above(const std::string& path, std::size_t known) {
  for (std::size_t at = known; (at = path.find('/', at + 1)) != std::string::npos;) {
    if (::mkdir(path.substr(0, at).c_str(), 0700) != 0 && errno != EEXIST) return false;
  }
  return true;
}

}  // namespace hpcbatch::pilot
