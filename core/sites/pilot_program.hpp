// The pilot program and its place on a site: delivered once for each content, so that the file of a
// pilot that runs is never replaced.
#pragma once

#include "hpcbatch/transport.hpp"

#include <memory>
#include <mutex>
#include <string>

namespace hpcbatch {

/// Copies know of each other: several lanes of one site do not deliver at once.
class PilotProgram {
 public:
  /// `file`: the program on this machine; `memory`: a file of the engine's in which the file system
  /// of the site's workspace is remembered, empty: nowhere.
  explicit PilotProgram(std::string file, std::string memory = {});

  /// Where it lies in a site's workspace.
  std::string path_in(const std::string& workspace) const;
  /// Puts it there, unless it is there already; not into a workspace that others can write, and not
  /// where that was mounted before.
  Result<void> deliver(Transport& transport, const std::string& workspace, Deadline deadline) const;

 private:
  std::string file_;
  std::string memory_;
  std::string name_;
  std::shared_ptr<std::timed_mutex> delivering_{std::make_shared<std::timed_mutex>()};
};

}  // namespace hpcbatch
