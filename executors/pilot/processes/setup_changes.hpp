// What the setup lines of a site have changed in a pilot's environment: its tasks get it too, over
// what their callers had.
#pragma once

#include "pilot/processes/surroundings.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pilot {

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

}  // namespace hpcbatch::pilot
