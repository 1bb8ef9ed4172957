// Carries a link by files where nothing may connect to anything: moves bytes between a socket of
// this process and the folders of one connection.  On a thread of its own, because a file system
// may hang.
#pragma once

#include "posix/fd.hpp"
#include "wire/encrypted_link.hpp"

#include "hpcbatch/result.hpp"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

namespace hpcbatch::pilot {

class SpoolCarrier {
 public:
  /// `spool`: the site's folder.  Nothing is waited for.
  SpoolCarrier(const std::string& spool, const wire::PilotName& pilot);
  SpoolCarrier(const SpoolCarrier&) = delete;
  SpoolCarrier& operator=(const SpoolCarrier&) = delete;
  /// The thread ends by itself when the link's socket is closed.
  ~SpoolCarrier() = default;

  /// The link's end, once; it does not block.  Empty where no descriptors or threads are left.
  Fd take_socket() { return std::move(ours_); }
  /// Waits until what was said before the socket was closed has been written, or until then.
  void wait_until_written(std::chrono::steady_clock::time_point until);

 private:
  // The thread may outlive this object.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool has_ended{false};
  };
  Fd ours_;
  std::shared_ptr<State> state_;
};

}  // namespace hpcbatch::pilot
