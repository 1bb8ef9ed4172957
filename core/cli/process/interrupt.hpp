// Ctrl-C and its relatives as something that can be waited for, so that no wait has to be cut off
// by a handler.
#pragma once

#include "posix/fd.hpp"

#include <chrono>

#include <signal.h>

namespace hpcbatch {

/// While it lives, SIGINT, SIGTERM and SIGHUP (those that our parent does not have us ignore) no
/// longer end the process but make `descriptor` readable.  Threads started meanwhile inherit that.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  int descriptor() const { return descriptor_.get(); }
  /// They end the process again, and whatever program it becomes.
  void let_through() const;
  /// The signal that came, taken off; 0 where none did.
  int take();
  /// Waits that long; throws InterruptedByUser where a signal comes first.
  void pause(std::chrono::milliseconds time) const;

 private:
  sigset_t before_{};
  Fd descriptor_;
};

}  // namespace hpcbatch
