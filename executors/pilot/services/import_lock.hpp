// Turns that pilots of one user on one node take to import the same: together they would take as
// much longer, from a file system that is slow already.
#pragma once

#include "posix/fd.hpp"

#include <string>

namespace hpcbatch::pilot {

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
