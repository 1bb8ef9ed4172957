#include "control_socket.hpp"

#include "../common/checksum.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

// An address of a socket has 108 bytes, of which ssh takes 17 for the name under which it is made.
constexpr std::size_t kLongestPath = 90;

}  // namespace

std::string default_control_directory() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/') return std::string(runtime) + "/hpcbatch-ssh";
  return "/tmp/hpcbatch-ssh-" + std::to_string(::geteuid());
}

void check_control_directory(const std::string& directory) {
  // ssh would expand a per cent sign.
  if (directory.find_first_of("%$ \"'\\") != std::string::npos)
    throw std::runtime_error("the control directory " + directory + " must have a plain name");
  struct stat facts {};
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    throw std::runtime_error("cannot make " + directory + ": " + std::strerror(errno));
  if (::lstat(directory.c_str(), &facts) != 0)
    throw std::runtime_error("cannot look at " + directory + ": " + std::strerror(errno));
  if (!S_ISDIR(facts.st_mode) || facts.st_uid != ::geteuid() || (facts.st_mode & 077) != 0) {
    throw std::runtime_error(directory +
                             " must be a directory of yours that nobody else may enter; run: "
                             "chmod 700 " +
                             directory + ", or set control_dir");
  }
}

std::string control_socket(const std::string& directory, const std::string& identity) {
  std::string path = directory + "/" + sha256_of(identity).substr(0, 16);
  if (path.size() > kLongestPath)
    throw std::runtime_error("the path of the control socket " + path +
                             " is too long; set control_dir to a shorter one");
  return path;
}

}  // namespace hpcbatch
