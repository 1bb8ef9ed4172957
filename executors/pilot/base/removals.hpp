// Directories that nobody needs any more, removed one after the other in the background.
#pragma once

#include "pilot/base/helper.hpp"

#include <string>
#include <vector>

namespace hpcbatch::pilot {

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

}  // namespace hpcbatch::pilot
