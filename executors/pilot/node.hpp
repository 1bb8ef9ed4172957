// The node as the pilot finds it: its cpus and devices, its own scratch directory, and what is
// wrong with it.
#pragma once

#include "pilot/base/remove_tree.hpp"
#include "pilot/policy/gpu_facts.hpp"
#include "pilot/processes/surroundings.hpp"
#include "posix/fd.hpp"
#include "wire/pilot_file.hpp"

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

}  // namespace hpcbatch::pilot
