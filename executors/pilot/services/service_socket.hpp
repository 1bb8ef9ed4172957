// What goes over the sockets of services, what they are told of a process to fork, and turns to
// import the same.
#pragma once

#include "posix/files.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <sys/resource.h>
#include <sys/types.h>

namespace hpcbatch::pilot {

// What goes over the sockets of services: words, and descriptors that go along.

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

// What a service is told of the process that it is to fork: docs/formats.md has the bytes.

struct ServiceRequest {
  std::vector<std::string> argv;
  char* const* environment{};
  std::string directory;
  std::vector<unsigned> cpus;        // empty: not bound
  std::optional<rlimit> open_files;  // none: as the pilot
  std::optional<mode_t> umask;       // none: as the pilot
};

std::string to_bytes(const ServiceRequest& request);

/// What `to_bytes` made.
struct ReadRequest {
  ServiceRequest request;                ///< without its environment
  std::vector<std::string> environment;  ///< `NAME=value`
};
/// None where the bytes are of another version, or damaged.
std::optional<ReadRequest> read_request(const std::string& bytes);

/// What a forked process says before it is let go, or what is said in its place.
struct Here {};
/// It cannot run as it should, for a reason that would have kept any process from it.
struct CannotEnter {
  int error{};  // errno
};
struct CannotServe {
  std::string why;
};
using ServiceReply = std::variant<Here, CannotEnter, CannotServe>;

ServiceReply read_reply(const std::string& text);

// Turns that pilots of one user on one node take to import the same: together they would take as
// much longer, from a file system that is slow already.

class ImportLock {
 public:
  ImportLock() = default;
  ImportLock(const ImportLock&) = delete;
  ImportLock& operator=(const ImportLock&) = delete;
  ~ImportLock() { end(); }

  /// False where another has the turn of `what`, any text.  `folder` is the node's own and may be
  /// anybody's to write; where nobody can be trusted to take turns there, none are taken.
  bool begin(const std::string& folder, const std::string& what);
  /// The next one's turn.
  void end();

 private:
  Fd lock_;
  std::string path_;
};

}  // namespace hpcbatch::pilot
