// Whether the workspace can be written: what failed there is tried again by a small file until that
// succeeds.
#pragma once

#include "pilot/policy/decide.hpp"

#include <optional>
#include <string>

namespace hpcbatch::pilot {

/// Writes a file into the folder and removes it; why that failed, or nothing.  For real: a full
/// disk lets files be made.
std::string check_writing(const std::string& folder, const std::string& pilot);

class WorkspaceWatch {
 public:
  WorkspaceWatch(std::string workspace, std::string pilot)
      : workspace_(std::move(workspace)), pilot_(std::move(pilot)) {}

  /// Something could not be written there for a reason that is no task's.
  void failed(std::string why, Time now);
  /// Looks again where that is due.
  void tick(Time now);
  /// Empty: nothing is known to be wrong.
  const std::string& trouble() const { return trouble_; }
  /// It is in trouble for so long that what waits for it had better run again elsewhere.
  bool is_hopeless(Time now) const;
  std::optional<Time> next() const { return look_at_; }

 private:
  std::string workspace_;
  std::string pilot_;
  std::string trouble_;
  std::optional<Time> look_at_;
  Time failing_since_{};
  std::optional<Time> well_since_;
};

}  // namespace hpcbatch::pilot
