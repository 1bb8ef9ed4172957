// What the kernel tells of changes in a directory (inotify), and a bell that other threads can
// ring.
#pragma once

#include "model/time.hpp"
#include "posix/fd.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

/// Hints only: network file systems tell nothing, and a full queue loses events (`look_at_all`).
class FolderEvents {
 public:
  FolderEvents();

  /// Watches this directory from now on, instead of any other.  False: it cannot be watched.
  bool watch(const std::string& directory);

  struct Change {
    std::string name;
    bool closed{false};  ///< written and closed, or renamed to this name
  };
  struct Changes {
    std::vector<Change> changes;
    bool look_at_all{false};  ///< events were lost, or the directory itself went away
  };
  /// Waits for a change, the bell, or the time.
  Changes wait(Duration at_most);
  /// From any thread: makes the present or the next `wait` return.
  void ring();

 private:
  Fd inotify_;
  Fd bell_;
  int watch_{-1};
};

}  // namespace hpcbatch
