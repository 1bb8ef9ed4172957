// Directories that nobody needs any more, removed one after the other in the background.
#pragma once

#include "pilot/base/chore.hpp"

#include <string>
#include <vector>

namespace hpcbatch::pilot {

class Removals {
 public:
  explicit Removals(Chores& chores) : chores_(chores) {}
  void add(std::string path);
  /// At the end, when nothing runs any more: everything that waits, and this.
  void remove_now(const std::string& path);

 private:
  void start();

  Chores& chores_;
  std::vector<std::string> waiting_;
  bool running_{false};
};

}  // namespace hpcbatch::pilot
