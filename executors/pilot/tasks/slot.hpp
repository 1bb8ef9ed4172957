// What a slot keeps from task to task, and what a task says of itself.
#pragma once

#include "pilot/base/files.hpp"
#include "pilot/processes/control_group.hpp"
#include "pilot/tasks/streams.hpp"

#include <memory>
#include <string>

namespace hpcbatch::pilot {

// What a slot keeps from task to task: pipes, control group, temporary directory.

struct Slot {
  Slot(Loop& loop, PackFile& pack, std::string temporary_directory)
      : output(loop, pack, 1), error(loop, pack, 2), temporary(std::move(temporary_directory)) {}

  /// Makes the temporary directory, or empties it where the task before left anything.
  void clean_temporary(Removals& removals);

  Capture output;
  Capture error;
  std::unique_ptr<ControlGroup> group;  // made for the first task that needs it
  std::string temporary;
};

// What a task says of itself beyond how it ended: one JSON object in a file that it is told of.

/// In the task's own temporary folder.
std::string metrics_file(const std::string& temporary);

struct Metrics {
  std::string text;     ///< as the task wrote it; empty: nothing
  std::string trouble;  ///< why it is left out: more than 64 KB, no object, no file
};
/// Never waits: a pipe in its place is none.
Metrics read_metrics(const std::string& temporary);

}  // namespace hpcbatch::pilot
