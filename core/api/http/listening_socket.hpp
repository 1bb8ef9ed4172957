// The file by which clients find a server: made, and found to be removed or replaced.  All here blocks
// on file systems; any thread.
#pragma once

#include "posix/fd.hpp"

#include "hpcbatch/result.hpp"

#include <string>

#include <sys/types.h>

namespace hpcbatch {

/// A Unix socket's file, as it was made.
struct SocketFile {
  std::string path;
  dev_t device{0};
  ino_t inode{0};
};

/// False once somebody has removed or replaced the file: nobody new comes in.
bool is_in_place(const SocketFile& file);

struct ListeningSocket {
  Fd descriptor;
  SocketFile file;
};

/// `path` may be longer than a socket address holds.  The socket has mode 0600; one that is there is
/// replaced.
Result<ListeningSocket> listen_at(const std::string& path);
/// The same; Rejected where another process listens there.
Result<ListeningSocket> listen_again_at(const std::string& path);

}  // namespace hpcbatch
