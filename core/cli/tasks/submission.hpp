// What the user said of a task -> the JSON of a submit.
#pragma once

#include "cli/parse/command.hpp"
#include "cli/parse/script.hpp"
#include "cli/process/process.hpp"
#include "cli/tasks/items.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace hpcbatch {

// Files of tasks for `submit --file`: JSON lines, YAML or TOML, read completely before anything is
// submitted.

/// The whole of a file, or of standard input for `-`, less a mark of UTF-8 at its beginning.  Throws CommandError and InterruptedByUser.
std::string read_input(const std::string& file, const Interrupt& interrupt);

/// One task object a line; empty lines are left out.  Throws CommandError with file and line.
boost::json::array tasks_of_json_lines(const std::string& text, const std::string& file);

/// A list of tasks, or `tasks:` with such a list, in the keys of a submit.  Throws CommandError or
/// DocumentError with file and line.
boost::json::array tasks_of_yaml(const std::string& text, const std::string& file);
boost::json::array tasks_of_toml(const std::string& text, const std::string& file);

/// By the file's name: .yaml and .yml, .toml, or .jsonl; `-` is JSON lines.
boost::json::array read_tasks(const std::string& file, const Interrupt& interrupt);

/// Where tasks and their keys stand in a file, for what the engine says of them.
class TaskPlaces {
 public:
  /// Takes it out of what read_tasks gave; of other tasks nothing is known.
  explicit TaskPlaces(boost::json::array& tasks);
  /// `FILE:LINE: task 3.memory: ...` of `task 3.memory: ...`; other texts as they are.
  std::string with_place(const std::string& file, const std::string& text) const;

 private:
  std::vector<boost::json::object> lines_;
};

// Tasks of one file that wait for each other, by name or by place.

/// Puts each task behind those that it waits for (else they stay in their order) and names these as
/// the engine takes them, `#3`, wherever the file says their name or place (`fit`, `fit.7`, `#3`);
/// ids of what was submitted before stay.  Throws CommandError where a name is not there, is
/// several tasks', or where tasks wait for each other in a circle.
void order_tasks(boost::json::array& tasks, const std::string& file);

/// Throws CommandError where the command line gives a parameter or an output two values.
void refuse_repeated(const WorkOptions& work, int exit_code);

/// On standard error, the folders into which outputs go that are not there: without them the work
/// would be done for nothing.
void tell_missing_folders(const WorkOptions& work, const std::string& directory);

/// A path of a task, as it is taken from a directory; one that its items make absolute stays.
std::string absolute_path(const std::string& from, const std::string& path, const Items& items);

/// One task of a submit.  Relative paths are taken from `directory`, the caller's, but for those
/// that begin with an item that is an absolute path itself.
boost::json::object task_of(const WorkOptions& work, const std::string& directory,
                            const Items& items = {});

/// The whole submit.  `key` may be empty.
boost::json::object submission_of(boost::json::array tasks, const Surroundings& around,
                                  const std::string& client, const std::string& key);

/// A key that nobody else chooses: with it a submit whose answer was lost can be sent again.
std::string random_key();

// One task for each index, or for each item -> the JSON of a submit.

/// Reads the items.  `directory`: the caller's.  Throws CommandError.
boost::json::object task_of_many(const WorkOptions& work, const ManyOptions& many,
                                 const std::string& directory, const Interrupt& interrupt);

/// What `--halt` and `--max-fails` say of so many tasks.
void bound_failures(boost::json::object& task, const ManyOptions& many, std::uint64_t tasks);

/// What of the command has hardly been meant so; empty: nothing.
std::string doubt_of(const WorkOptions& work, const ManyOptions& many,
                     const boost::json::object& task);
/// The same on standard error; it is run nevertheless.
void tell_doubt(const WorkOptions& work, const ManyOptions& many, const boost::json::object& task);

/// How many of so many tasks may fail.
std::uint64_t failures_allowed(const HaltOption& halt, std::uint64_t tasks);

// `submit SCRIPT`: what the script asks for and what the command line says, together.

/// Reads the script, and says on standard error what is taken from lines for SLURM.  What the
/// command line says holds over what the script does.  A script that relies on variables of a batch
/// system which nobody sets is refused.  Throws CommandError.
SubmitCommand with_script(const SubmitCommand& asked, const Surroundings& around,
                          const Interrupt& interrupt);

/// The same of a text; `asked.script` is what its user calls it.  As sbatch it says nothing, and reads
/// `beside` with the script's lines.
SubmitCommand with_text_of_script(const SubmitCommand& asked, const std::string& text,
                                  const Surroundings& around, WordsBeside beside = {});

}  // namespace hpcbatch
