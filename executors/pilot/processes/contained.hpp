// A task's container as the node has it: the runtime found, the image looked at, what is to be
// shown checked.
#pragma once

#include "pilot/policy/container_command.hpp"
#include "pilot/processes/prepare.hpp"

#include <sys/resource.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch::pilot {

/// What of a node and its pilot holds for every container.
struct ContainerGround {
  std::string search;   // the PATH on which runtimes are looked for
  std::string program;  // the pilot's own: it runs what is in a container
  ContainerRule rule;
  std::string images;                // folder of the site's images
  std::uint64_t images_limit{};      // bytes of them
  std::optional<rlimit> open_files;  // as tasks are to have it; none: as the pilot
};

/// What of the node this one is to show beside what its runtime shows by itself.
struct ContainerView {
  std::string directory;             // where the task runs
  std::vector<std::string> folders;  // others
  std::string temporary;             // TMPDIR
  GpuMaker maker{GpuMaker::None};    // of the node's GPUs
  bool has_gpus{false};
};

std::vector<FoundRuntime> runtimes_on(const std::string& search);

std::variant<ContainerPlan, Refusal> plan_container(const wire::Start& start,
                                                    const ContainerView& view,
                                                    const ContainerGround& ground);

/// Of a folder with a root file system that Charliecloud runs: what it lacks to show the node's
/// files, and whether it has variables.
std::optional<Refusal> complete_tree(ContainerPlan& plan);

/// Where the task's program is reported on.
std::string report_file(const std::string& temporary);

}  // namespace hpcbatch::pilot
