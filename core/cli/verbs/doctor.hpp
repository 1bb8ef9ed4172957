// `doctor`: looks at this installation from the outside and says of each part whether it is
// good, and if not, what to do.
#pragma once

#include "documents/state_paths.hpp"

#include <string>
#include <vector>

#include <sys/types.h>

namespace hpcbatch {

// What of hpcbatch can be checked from the outside: permissions, file systems, files of the
// program, configuration.

/// One line of the self-check.  `text` says what was found and, where it is bad, what to do.
struct Check {
  std::string name;
  bool is_good{true};
  std::string text;
};

Check check_home(const Places& places);
Check check_socket(const Places& places);
Check check_file_system(const Places& places);
Check check_configuration(const Places& places);
/// How large the files may be that the process writes; 0: this one, as an engine would.
Check check_file_size(pid_t process);
/// The engine of this home died; the fault that its log names last, if any.
Check check_death(const Places& places);
/// `program` is the path of the running program.
Check check_plugins(const std::string& program);
Check check_pilot(const std::string& program);
/// Whether a process runs the program and the plugins that are installed now: what it has loaded it
/// keeps, and files that were replaced since are gone from the file system.
Check check_loaded(pid_t process);

/// The path of this program.
std::string own_program();

}  // namespace hpcbatch
