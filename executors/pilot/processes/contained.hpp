// A task's container as the node has it: the runtime found, the image looked at, what is to be
// shown checked.
#pragma once

#include "pilot/policy/container.hpp"
#include "pilot/processes/prepare.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <sys/resource.h>

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

// Empty files and folders in an image that is a folder, at which something of the node is shown.

/// True where something is at `path` in the image, or is now; a link on the way there is not
/// followed and left to the runtime.  Else false, with errno set.
bool make_mount_point(const std::string& image, const std::string& path, bool is_folder);

// Our program in a container: starts the task's command there, hands signals on to it, and reports
// how it began and ended.  As the first process of the container it does that a first process's
// duties: a program in its place would be deaf to signals, and codes of the runtime's own would be
// taken for the program's.

/// What the process is to exit with: as a shell says it of the command.
int run_inside(const std::string& report, const std::vector<std::string>& command);

}  // namespace hpcbatch::pilot
