// Keeps two pilots of a site from pulling one image at once.  A file that is made where there is
// none: all shared file systems can do that, not all can lock.  What is pulled appears whole all the
// same, so a lock that is lost costs a second pull and no more.
#pragma once

#include <string>

namespace hpcbatch::pilot {

class PullLock {
 public:
  explicit PullLock(std::string path) : path_(std::move(path)) {}
  PullLock(const PullLock&) = delete;
  PullLock& operator=(const PullLock&) = delete;
  ~PullLock();

  /// False, with errno EEXIST where another has it and gives signs of life.
  bool take();
  /// A sign of life; at least one every half minute.
  void renew() const;

 private:
  bool is_given_up() const;

  std::string path_;
  bool is_held_{false};
};

}  // namespace hpcbatch::pilot
