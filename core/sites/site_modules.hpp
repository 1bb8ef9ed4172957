// The environment modules of a site, as its batch scripts find them: what may be loaded in `setup`.
#pragma once

#include "hpcbatch/command_line.hpp"

#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// Asks in the way in which a pilot's batch script would have `module`.
CommandLine list_modules();

/// Names such as cuda/12.2, in the order in which they were told; none at all where there is no
/// `module`; nothing where it could not be found out.  Reads `module -t avail` of Lmod and of
/// Environment Modules (their manuals, "avail").  Pure.
struct Modules {
  bool has_command{false};
  std::vector<std::string> names{};
};
std::optional<Modules> read_modules(const CommandOutput& output);

/// One sentence for a person.  Pure.
std::string show_modules(const std::optional<Modules>& modules);

}  // namespace hpcbatch
