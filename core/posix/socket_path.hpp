// Unix sockets at paths of any length.
#pragma once

#include "posix/files.hpp"

#include <string>

#include <sys/un.h>

namespace hpcbatch {

/// `text` names the socket in at most 107 bytes, which is what a socket address holds (unix(7)), as
/// long as `folder` is open.
struct SocketPath {
  std::string text;
  Fd folder;     ///< of a path that is longer
  int error{0};  ///< errno where its folder cannot be opened, or its own name is too long
};

SocketPath socket_path(const std::string& path);

/// Of one without an error.
sockaddr_un address_of(const SocketPath& path);

}  // namespace hpcbatch
