// Three families have commands of the same names and understand different words: OpenPBS with PBS
// Pro, Torque, and the Perl scripts of SLURM that look like Torque's.
#pragma once

#include "hpcbatch/command_line.hpp"

#include <array>
#include <map>
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

// What an administrator may say about a PBS.
//
//   dialect: openpbs              # else the commands themselves are asked
//   place: scatter:excl           # what qsub gets as `-l place=`
//   gpu_kinds:                    # how a kind of GPU is asked for, beside its number
//     a100: gpu_model=A100        # (Torque: the property of the nodes that have it)

struct Settings {
  std::string dialect;  ///< empty: to be asked
  std::string place;    ///< empty: a node of its own for each pilot, and nothing else
  std::map<std::string, std::string> gpu_kinds;
};

/// Throws what is wrong and in which line.
Settings read_settings(const char* config_yaml);

}  // namespace hpcbatch::pbs
