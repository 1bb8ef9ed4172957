#include "pilot/base/removals.hpp"

#include "pilot/base/log_line.hpp"
#include "pilot/base/remove_tree.hpp"

#include <unistd.h>
#include <cerrno>

namespace hpcbatch::pilot {

void Removals::add(std::string path) {
  if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return;
  waiting_.push_back(std::move(path));
  if (!running_) start();
}

void Removals::remove_now(const std::string& path) {
  waiting_.push_back(path);
  for (const std::string& each : waiting_) remove_tree(each);
  waiting_.clear();
}

void Removals::start() {
  running_ = true;
  helpers_.start(
      [paths = std::exchange(waiting_, {})] {
        std::string left;
        for (const std::string& path : paths) {
          if (!remove_tree(path)) left += " " + path;
        }
        return left;
      },
      " something: the process that removed it died",
      [this](const std::string& left) {
        running_ = false;
        if (!left.empty()) log_line("cannot remove all of" + left);
        if (!waiting_.empty()) start();
      });
}

}  // namespace hpcbatch::pilot
