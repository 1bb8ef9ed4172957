// Options of batch systems, in lines of scripts and elsewhere: which of them hold here, which change
// nothing here, and what to do about the others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch::batch {

enum class Fate : std::uint8_t { Holds, LeftOut, Refused };
enum class Argument : std::uint8_t { None, Needed, Optional };

/// One option of a batch system.
struct Directive {
  std::string_view name;  ///< without dashes; of qsub's -l the resource, as `-l walltime`
  char letter;            ///< 0: it has none
  Argument argument;
  Fate fate;
  /// What it becomes here; why it changes nothing; what to do instead.
  std::string_view what;

  /// `--cpus` of what begins so; empty: none.
  constexpr std::string_view option_of_submit() const {
    if (!what.starts_with("`--")) return {};
    return what.substr(1, what.find_first_of("` ", 1) - 1);
  }
};

/// Of sbatch (SLURM 22 to 25), and of qsub (OpenPBS, with what Torque adds), in their order.
std::span<const Directive> slurm_directives();
std::span<const Directive> pbs_directives();

/// What options of a batch system come to.
struct Terms {
  /// Options of `submit`, as words of its command line.  A file begins with kPatternMark.
  std::vector<std::string> options;
  /// As they were said: `-c 4 as --cpus 4`; `--mail-type=END`.
  std::vector<std::string> held, left_out;
  /// Of submit those that the caller of sbatch has settled, whether or not `options` has them.
  std::vector<std::string_view> settled;
  // How many cpus and GPUs there are is known where all has been said, here and elsewhere.  0: not
  // said.
  std::uint64_t memory_per_cpu{0}, memory_per_gpu{0};  ///< bytes
  std::uint32_t cpus_per_gpu{0};

  // What a job finds of it in its environment.
  bool has_no_name{false};  ///< as an empty one says
  bool says_cpus{false};    ///< for each task
  std::uint32_t nodes{1};
  std::uint32_t tasks{0};  ///< on all nodes; 0: not said
  std::uint32_t tasks_per_node{0};
  bool memory_otherwise{false};  ///< what it has of a node is not said, but for each cpu or GPU
  /// That some of its options set, by sbatch(1), "OUTPUT ENVIRONMENT VARIABLES".
  std::vector<std::pair<std::string, std::string>> variables;
  std::string interpreter;              ///< qsub -S
  std::string joined;                   ///< qsub -j: oe, eo or n
  std::string signal;                   ///< NAME or number; empty: none
  std::uint64_t signal_before{0};       ///< seconds before its time is over
  bool signals_steps{false};            ///< it goes to what srun starts, and not to the script
  bool is_parsable{false};              ///< its number alone is printed
  bool is_quiet{false};                 ///< nothing is printed
  bool mails{false};                    ///< at the end, however it comes
  bool mails_failures{false};           ///< at the end, where something failed
  std::vector<std::string> mail_users;  ///< none: the user himself
  bool any() const { return !held.empty() || !left_out.empty(); }
};

/// Words of a line, as a shell would part them: blanks part words but within quotation marks; a
/// comment ends them.  As sbatch reads its lines, a comment begins within a word too, and what stands
/// behind a backslash is meant as it stands, but for a blank (22.05, as it was tried).  Throws
/// std::invalid_argument that begins with `where`.
enum class WordsOf : bool { Shell, Sbatch };
std::vector<std::string> split_words(std::string_view text, const std::string& where,
                                     WordsOf of = WordsOf::Shell);

/// A value of a batch system's option as one of ours has it: of names all braces are meant as they
/// stand.
std::string value_for(std::string_view option, const std::string& value);

/// `--notify` for what it says of mails.
void add_mails(Terms& terms);
/// Its parts, less those that are empty.
std::vector<std::string> split_at(std::string_view text, char separator);

/// `name: what` of one that is refused, beginning with `where`.
std::string refusal_of(const std::string& where, const std::string& said, std::string_view what);

}  // namespace hpcbatch::batch
