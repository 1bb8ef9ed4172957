// The pilot program and its place on a site, and of the helper that looks at GPUs: delivered once for
// each content, so that the file of a pilot that runs is never replaced.
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
  /// of the site's workspace is remembered, empty: nowhere; `gpu_helper`: that program, empty: none;
  /// `trust_group`: whose members may write the workspace, empty: nobody's.
  explicit PilotProgram(std::string file, std::string memory = {}, std::string gpu_helper = {},
                        std::string trust_group = {});

  /// Where it lies in a site's workspace.
  std::string path_in(const std::string& workspace) const;
  /// The same of the helper; empty: there is none.
  std::string gpu_helper_in(const std::string& workspace) const;
  /// Puts them there, unless they are there already; not into a workspace that the guard of trusted
  /// paths refuses, and not where that was mounted before.
  Result<void> deliver(Transport& transport, const std::string& workspace, Deadline deadline) const;

 private:
  std::string file_;
  std::string memory_;
  std::string name_;
  std::string gpu_helper_;
  std::string gpu_helper_name_;
  std::string trust_group_;
  struct Delivering {
    std::timed_mutex turn;
    std::string said;  ///< of the workspace, and not to be said at each look
  };
  std::shared_ptr<Delivering> delivering_{std::make_shared<Delivering>()};
};

}  // namespace hpcbatch
