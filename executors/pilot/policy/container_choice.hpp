// Which of a node's container runtimes runs a task: by what the task asks for, what its image is,
// and the order that the site wishes.
#pragma once

#include "pilot/policy/container_image.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch::pilot {

enum class Runtime { Apptainer, Singularity, Podman, Charliecloud, Docker };

/// As people write it.
const char* name_of(Runtime runtime);
/// As its program is called.
const char* program_of(Runtime runtime);
std::optional<Runtime> runtime_named(const std::string& name);

/// Those that may be used, the first that is there first.
struct ContainerRule {
  std::vector<Runtime> order{Runtime::Apptainer, Runtime::Singularity, Runtime::Podman,
                             Runtime::Charliecloud, Runtime::Docker};
  std::string trouble;  // what is wrong with what the site says; then nothing is run
};
/// From names between blanks or commas; nothing said: all, in the order above.
ContainerRule container_rule(const std::string& text);

struct FoundRuntime {
  Runtime runtime{Runtime::Apptainer};
  std::string program;  // its path
};

/// What a task asks of its runtime that not all of them can do.
struct ContainerWish {
  std::string runtime;  // empty: any
  bool no_network{false};
  bool keeps_entrypoint{false};
  bool has_read_only_binds{false};
};

/// The first of the rule that is on the node and does all that is asked for; else one sentence.
std::variant<FoundRuntime, std::string> choose_runtime(const Image& image,
                                                       const ContainerWish& wish,
                                                       const ContainerRule& rule,
                                                       const std::vector<FoundRuntime>& found);

}  // namespace hpcbatch::pilot
