// What a service is told of the process that it is to fork: docs/formats.md has the bytes.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch::pilot {

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

}  // namespace hpcbatch::pilot
