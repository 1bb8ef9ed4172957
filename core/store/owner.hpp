// Who owns the state directory: one engine, on one host, for as long as it lives.
#pragma once

#include "hpcbatch/result.hpp"

#include <string>

namespace hpcbatch::store {

/// What the lock file says of the engine that holds it.
struct Owner {
  std::string host;
  std::string boot_id;
  int process{0};
  long long process_start{0};  ///< field 22 of /proc/PID/stat
  long long heartbeat{0};      ///< seconds since 1970, by that host's clock
};

/// Held until destroyed.  Not flock alone: some network file systems lack it or keep it to one node.
class OwnerLock {
 public:
  /// Refused, with who holds it, while another engine lives: on this host as its process shows, on another host while
  /// its heartbeat is younger than ten minutes.
  static Result<OwnerLock> take(const std::string& directory);
  OwnerLock(OwnerLock&& other) noexcept;
  OwnerLock& operator=(OwnerLock&&) = delete;
  ~OwnerLock();

  /// To be called about once a minute.
  void renew();

 private:
  OwnerLock(std::string file, int descriptor) : file_(std::move(file)), descriptor_(descriptor) {}
  std::string file_;
  int descriptor_{-1};
};

}  // namespace hpcbatch::store
