// Where the control socket of a login lies: a private directory, and a name that every object for
// the same login finds again.
#pragma once

#include <string>

namespace hpcbatch {

/// Below $XDG_RUNTIME_DIR, else /tmp.
std::string default_control_directory();
/// Makes it, or checks that it is ours alone.  Throws std::runtime_error with what is wrong.
void check_control_directory(const std::string& directory);
/// Named after `identity`.  Throws std::runtime_error where the path is too long.
std::string control_socket(const std::string& directory, const std::string& identity);

}  // namespace hpcbatch
