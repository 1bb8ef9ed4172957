// Where the control socket of a login lies: a private directory, and a name that every object for
// the same login finds again.
#pragma once

#include <string>

namespace hpcbatch {

/// Below $XDG_RUNTIME_DIR, else /tmp.
std::string default_control_directory();
/// Makes the directory, or checks that it is ours alone, and names the socket after `identity`.
/// Throws std::runtime_error with what is wrong.
std::string control_socket(const std::string& directory, const std::string& identity);

}  // namespace hpcbatch
