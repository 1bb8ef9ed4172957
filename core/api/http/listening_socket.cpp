#include "api/http/listening_socket.hpp"

#include "posix/socket_path.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

constexpr mode_t kOwnerOnly = 0600;

Error cannot_listen(const std::string& path, const std::string& why) {
  return {Error::Kind::Rejected, fmt::format("cannot listen on {}: {}", path, why)};
}

Fd new_socket() {
  return Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool is_listened_at(const std::string& path) {
  const SocketPath reachable = socket_path(path);
  if (reachable.error != 0) return false;
  const sockaddr_un address = address_of(reachable);
  const Fd client = new_socket();
  // One that has no room for more just now listens too.
  return client && (::connect(client.get(), reinterpret_cast<const sockaddr*>(&address),
                              sizeof address) == 0 ||
                    errno == EAGAIN);
}

}  // namespace

bool is_in_place(const SocketFile& file) {
  struct stat facts {};
  return !file.path.empty() && ::stat(file.path.c_str(), &facts) == 0 &&
         facts.st_dev == file.device && facts.st_ino == file.inode;
}

Result<ListeningSocket> listen_at(const std::string& path) {
  const SocketPath reachable = socket_path(path);
  if (reachable.error != 0) return cannot_listen(path, std::strerror(reachable.error));
  const sockaddr_un address = address_of(reachable);
  ::unlink(path.c_str());
  Fd made = new_socket();
  struct stat facts {};
  // bind(2) gives the file the mode of the socket; the umask would be that of all threads.
  if (!made || ::fchmod(made.get(), kOwnerOnly) != 0 ||
      ::bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(made.get(), SOMAXCONN) != 0 || ::stat(path.c_str(), &facts) != 0)
    return cannot_listen(path, std::strerror(errno));
  return ListeningSocket{std::move(made), {path, facts.st_dev, facts.st_ino}};
}

Result<ListeningSocket> listen_again_at(const std::string& path) {
  if (is_listened_at(path)) return cannot_listen(path, "another process listens there");
  return listen_at(path);
}

}  // namespace hpcbatch
