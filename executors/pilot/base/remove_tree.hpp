// Removes a directory with all in it, never following a link out of it.
#pragma once

#include "pilot/base/helper.hpp"

#include <string>
#include <vector>

namespace hpcbatch::pilot {

/// Directories that nobody needs any more, removed one after the other in the background.
class Removals {
 public:
  explicit Removals(Helpers& helpers) : helpers_(helpers) {}
  void add(std::string path);
  /// At the end, when nothing runs any more: everything that waits, and this.
  void remove_now(const std::string& path);

 private:
  void start();

  Helpers& helpers_;
  std::vector<std::string> waiting_;
  bool running_{false};
};

/// False where something of it is left.
bool remove_tree(const std::string& path);
/// A file, a link or a whole directory `name` in the directory `parent`; true where it is not
/// there.
bool remove_entry(int parent, const std::string& name);
/// What is in it, and not the directory itself.
bool empty_tree(const std::string& path);

}  // namespace hpcbatch::pilot
