// The command line as Slurm's commands read it: letters with their value behind them or not, long
// names and unambiguous beginnings of them, by one table a command.
#pragma once

#include "batch/directives.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch::slurm_commands {

/// Ends a command: `what()` is all that is printed on standard error; it may be empty.
class CommandFailed : public std::runtime_error {
 public:
  explicit CommandFailed(const std::string& text, int exit_code = 1)
      : std::runtime_error(text), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

/// Of sbatch and its relatives the lines of a script ask for the same.
enum class Use : std::uint8_t {
  Here,     ///< the command itself heeds it
  Ignored,  ///< it changes nothing here
  Refused   ///< it would change what happens, and there is nothing like it
};

struct Option {
  enum class Takes : std::uint8_t { Nothing, Value, Maybe };
  char letter{0};  ///< 0: it has none
  std::string_view name;
  Takes takes{Takes::Nothing};
  Use use{Use::Here};
};

struct OptionTable {
  std::string_view command;
  std::span<const Option> options;
  /// The first word that is no option ends them, as for sbatch and srun.
  bool stops_at_word{false};
};

class Parsed {
 public:
  /// By their long names, in the order of the command line.
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<std::string> words;
  /// How many of the words stand before `--`; nothing: it is not there.
  std::optional<std::size_t> before_dashes;

  bool has(std::string_view name) const;
  /// The last one; nothing where it is not there.
  std::optional<std::string> value(std::string_view name) const;
  /// Of all of them, at commas.
  std::vector<std::string> list(std::string_view name) const;
};

/// Throws CommandFailed with the sentences of getopt(3), or why an option is refused.
Parsed parse_options(const OptionTable& table, const std::vector<std::string>& words);

using batch::split_at;

/// The tables of all commands.
const OptionTable& sbatch_options();
const OptionTable& squeue_options();
const OptionTable& sacct_options();
const OptionTable& scancel_options();
const OptionTable& scontrol_options();
const OptionTable& sinfo_options();
const OptionTable& srun_options();
const OptionTable& sacctmgr_options();
const OptionTable& sshare_options();

}  // namespace hpcbatch::slurm_commands
