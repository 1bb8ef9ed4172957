// The shell text of one remote command, and what comes back of it.  Pure: no file, process or
// connection is touched here.
#pragma once

#include "framed_answer.hpp"

#include "hpcbatch/command_line.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

/// The script is always sent by standard input: arguments are seen by everybody on a login node,
/// and the shells that users choose quote each in its own way.
enum class InputAfterScript : std::uint8_t { No, Yes };
enum class FarEnvironment : std::uint8_t { Minimal, Users };

/// What is given to the login shell, whichever it is: reads a script of that many bytes and runs
/// it with sh.  Of a script that was cut off nothing runs.
std::string starter(std::size_t script_size, InputAfterScript after, FarEnvironment environment);

/// The body between the lines of the frame; its exit status is the answer's.  Whatever becomes of
/// the connection, it and what it started are killed after `limit`.
std::string framed(const Frame& frame, const std::string& body, std::chrono::milliseconds limit);

/// A command with its environment.
std::string command_script(const Frame& frame, const CommandLine& command,
                           const std::map<std::string, std::string>& environment,
                           std::chrono::milliseconds limit);
/// A command that becomes the stream behind the frame's first line.
std::string stream_script(const Frame& frame, const CommandLine& command,
                          const std::map<std::string, std::string>& environment);
/// Ends the group and all else of the session that it leads.
std::string kill_script(const Frame& frame, int group, std::chrono::milliseconds limit);

/// Asks the user's login shell for what commands of batch systems need.
std::string environment_script(const Frame& frame, std::chrono::milliseconds limit);
/// Nothing where the login shell did not answer.
std::optional<std::map<std::string, std::string>> read_environment(const Frame& frame,
                                                                   std::string_view output);

/// A shell word of any text without NUL; what is not plain ASCII is written so that no shell
/// misreads it.
std::string print_text(std::string_view text);
/// A path as one quoted word that is never taken for an option.
std::string quoted_path(const std::string& path);

}  // namespace hpcbatch
