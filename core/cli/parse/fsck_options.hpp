// What `hpcbatch fsck` is told.
#pragma once

#include <functional>
#include <string>

namespace hpcbatch {

struct FsckOptions {
  std::string store;    ///< its file; empty: that of the state directory
  std::string salvage;  ///< a new file for what can be read; empty: only look
  bool json{false};
};

/// Prints what it finds; the exit code.
using FsckMain = std::function<int(const FsckOptions&)>;

}  // namespace hpcbatch
