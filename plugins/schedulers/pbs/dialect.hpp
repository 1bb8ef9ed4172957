// Three families have commands of the same names and understand different words: OpenPBS with PBS
// Pro, Torque, and the Perl scripts of SLURM that look like Torque's.
#pragma once

#include "hpcbatch/command_line.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pbs {

inline constexpr std::array<std::string_view, 3> kDialects{"openpbs", "torque", "slurm-torque"};

/// `script` for sh, run after it knows `$dialect`; `arguments` are its "$1" and so on.
CommandLine in_dialect(const std::string& dialect, const std::string& script,
                       const std::vector<std::string>& arguments);

/// The text without the command line that SLURM's qsub repeats where it fails.
std::string without_echo(const std::string& text);

/// What the commands of PBS said, without their names before each line; for people.
std::string one_line(const std::string& text);

}  // namespace hpcbatch::pbs
