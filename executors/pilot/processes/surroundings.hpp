// The environment variables of a task: its caller's, then what the pilot sets, then the task's own,
// then what the pilot insists on.  Nothing of the pilot's own environment is handed on, where the
// caller's is known.
#pragma once

#include "pilot/policy/container.hpp"
#include "pilot/policy/room.hpp"
#include "wire/wire.pb.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pilot {

/// "NAME=value" lines; shared by the tasks that have it.
using BaseEnvironment = std::vector<std::string>;

/// A variable that the pilot sets for each task, or for none.
bool is_pilots(std::string_view name);
/// What PWD is to be where the task's `directory` is not the one that its environment names; nothing:
/// as it is, which may be a path by which the user came there.
std::optional<std::string> path_to_correct(const BaseEnvironment& base,
                                           const std::string& directory);

/// A caller's environment without what the pilot sets.  What a batch job set in which he submitted
/// he has left out himself: only he knows it from settings of his own.
BaseEnvironment base_environment(const wire::Environment& environment);

/// What a task gets of whom nobody's environment is known: HOME, PATH, USER, LANG and the like from
/// the pilot's own.
BaseEnvironment minimal_environment(char* const* own);

/// The devices behind the pilot's numbers, as the batch system names them.
class Devices {
 public:
  /// `environment` is the pilot's own: the batch system shows its devices in a variable of their
  /// maker, or says nothing.
  Devices(unsigned count, char* const* environment);

  /// The variable that names them, to the pilot and to tasks.
  const std::string& variable() const { return variable_; }
  GpuMaker maker() const;

  /// How many the batch system shows us; nothing where it says nothing.
  std::optional<std::size_t> shown() const;
  bool any() const { return count_ > 0; }
  std::string names(const std::vector<unsigned>& gpus) const;
  /// The numbers of the node's devices where they are known, else the pilot's own.
  std::string numbers(const std::vector<unsigned>& gpus) const;

 private:
  unsigned count_;
  std::string variable_;
  bool set_{false};
  std::vector<std::string> names_;
};

/// A task's environment, ready to be handed to a program.
class TaskEnvironment {
 public:
  TaskEnvironment(std::shared_ptr<const BaseEnvironment> base,
                  const std::map<std::string, std::string>& own);

  char* const* pointers() { return pointers_.data(); }
  std::vector<std::string> names() const;
  /// Null where it is not set.
  const char* find(std::string_view name) const;

 private:
  std::shared_ptr<const BaseEnvironment> base_;
  std::vector<std::string> own_;
  std::vector<char*> pointers_;  // null at its end
};

/// "12" or "12.345".
std::string task_id(const wire::Start& start);

/// GPUs that it was granted, in 1/10000.
std::int64_t granted_gpus(const wire::Start& start);

struct PilotNames {
  std::string pilot;  // NAME.RANK
  std::string site;
};

/// All that stands over the caller's environment.
std::map<std::string, std::string> task_variables(const wire::Start& start,
                                                  const Placement& placement,
                                                  const PilotNames& names, const Devices& devices,
                                                  const std::string& temporary_directory);

// What the setup lines of a site have changed in a pilot's environment: its tasks get it too, over
// what their callers had.

class SetupChanges {
 public:
  SetupChanges() = default;
  /// `before`: the environment in front of the lines, each NAME=value ended by a byte 1; empty: not
  /// known, and nothing has changed.  `now`: the pilot's own.
  SetupChanges(std::string_view before, char* const* now);

  /// Of lists of folders (PATH and those that end so) what was added and removed, so that a
  /// caller's own entries stay; all other variables as the lines have left them.
  void apply(BaseEnvironment& environment) const;

 private:
  struct ListChange {
    std::vector<std::string> front, back, gone;
  };
  void compare(const std::string& name, const std::string& before, const std::string& now);

  std::map<std::string, std::string> set_;
  std::map<std::string, ListChange> lists_;
  std::set<std::string> unset_;
};

/// The variable in which a batch script hands `before` on; it is taken out of the environment.
std::string take_before_setup();

// What the kernel says of this node's cpus (Documentation/ABI/stable/sysfs-devices-node,
// admin-guide/cputopology).

/// Of these cpus; what nobody says is one node of memory, and a core each.  `root` is where the
/// kernel's files are.
Topology read_topology(const std::vector<unsigned>& cpus, const std::string& root = "/sys");

}  // namespace hpcbatch::pilot
