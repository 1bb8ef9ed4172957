// What goes over the sockets of services: words, and descriptors that go along.
#pragma once

#include "posix/fd.hpp"

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pilot {

/// Both ends close on exec.  The first does not block.
bool socket_pair(Fd& ours, Fd& theirs);

/// Bytes of any length, to be read by whoever is given the descriptor.
Fd in_memory(const std::string& bytes);

/// At most eight of them.
bool send_with_descriptors(int socket, std::string_view text, const std::vector<int>& fds);

struct Heard {
  bool is_end{false};
  std::string text;
  pid_t sender{-1};  // as the kernel says it, where that was asked for
};

/// Nothing where nothing is there yet.
std::optional<Heard> receive(int socket, bool with_sender);

}  // namespace hpcbatch::pilot
