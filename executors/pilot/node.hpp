// The node as the pilot finds it: its cpus and devices, its own scratch directory, and what is
// wrong with it.
#pragma once

#include "pilot/base/files.hpp"
#include "pilot/policy/decide.hpp"
#include "pilot/policy/gpu_facts.hpp"
#include "pilot/processes/surroundings.hpp"
#include "posix/files.hpp"
#include "wire/pilot_file.hpp"

#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

struct Node {
  std::string name;
  /// The cpus to bind tasks to: all that this process may use, where they are just as many as the
  /// pilot was given. Else the node is not confined, others choose cpus too, and nothing is bound.
  std::vector<unsigned> cpus;
  Devices devices;
  std::string scratch;  // the pilot's own directory below the site's scratch
  Fd scratch_lock;      // held while we live: how others see that it is not left over
  /// Self-checks that failed: with any of these the pilot starts nothing.
  std::vector<std::string> refusals;
  std::vector<GpuFacts> gpus;  // by the pilot's numbers; none: nobody knows them
};

Node look_at_node(const wire::PilotFile& file, const std::string& pilot);

/// Scratch directories that dead pilots of ours left here.
std::vector<std::string> left_over_scratch(const std::string& base);

// Whether the workspace can be written: what failed there is tried again by a small file until that
// succeeds.

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
