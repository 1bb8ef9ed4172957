// Files of tasks for `submit --file`: JSON lines, YAML or TOML, read completely before anything is
// submitted.
#pragma once

#include "cli/process/exit.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <string>
#include <vector>

namespace hpcbatch {

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

}  // namespace hpcbatch
