#include "posix/socket_path.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace hpcbatch {

SocketPath socket_path(const std::string& path) {
  constexpr std::size_t kHolds = sizeof sockaddr_un{}.sun_path;
  if (path.size() < kHolds) return {path, {}, 0};
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", {}, ENAMETOOLONG};
  SocketPath found;
  // A descriptor of the folder makes any path short.
  found.folder = Fd(::open(path.substr(0, slash + 1).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!found.folder) return {"", {}, errno};
  found.text = "/proc/self/fd/" + std::to_string(found.folder.get()) + path.substr(slash);
  if (found.text.size() >= kHolds) return {"", {}, ENAMETOOLONG};
  return found;
}

sockaddr_un address_of(const SocketPath& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.text.c_str(), path.text.size() + 1);
  return address;
}

}  // namespace hpcbatch
