// Waits for descriptors: the one place in which the pilot sleeps.
#pragma once

#include "pilot/base/clock.hpp"
#include "posix/files.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace hpcbatch::pilot {

class Loop {
 public:
  /// Gets EPOLLIN and so on.
  using Ready = std::function<void(std::uint32_t events)>;

  Loop();

  /// The descriptor stays its owner's, who calls `forget` before it is closed.
  void watch(int fd, std::uint32_t events, Ready ready);
  void change(int fd, std::uint32_t events);
  void forget(int fd);

  /// Sleeps until something is ready or `until`, and calls whoever waits for it.  Returns when it
  /// woke up: what is called may take long itself.
  Time wait(std::optional<Time> until);

 private:
  struct Watched {
    std::uint32_t generation{0};
    std::shared_ptr<Ready>
        ready;  // shared with the call in progress, which may forget its own descriptor
  };
  Fd epoll_;
  std::vector<Watched> watched_;  // by descriptor
};

}  // namespace hpcbatch::pilot
