// What a slot keeps from task to task: pipes, control group, temporary directory.
#pragma once

#include "pilot/base/remove_tree.hpp"
#include "pilot/processes/control_group.hpp"
#include "pilot/tasks/capture.hpp"

#include <memory>
#include <string>

namespace hpcbatch::pilot {

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

}  // namespace hpcbatch::pilot
