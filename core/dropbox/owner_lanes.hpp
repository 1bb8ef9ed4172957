// Where the drop box does for each user what may take long: one user's large files hold up his own jobs
// and nobody else's.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace hpcbatch {

/// Each owner's work is done in its order, one piece at a time; owners take turns on at most `most`
/// threads, which are started as they are needed.
class OwnerLanes {
 public:
  explicit OwnerLanes(std::size_t most) : most_(most) {}
  OwnerLanes(const OwnerLanes&) = delete;
  OwnerLanes& operator=(const OwnerLanes&) = delete;
  /// Waits until all that was given has been done.
  ~OwnerLanes();

  /// Any thread.  `work` must not throw.
  void post(std::uint32_t owner, std::function<void()> work);

 private:
  void serve();

  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::map<std::uint32_t, std::deque<std::function<void()>>> waiting_;  ///< of owners with work
  std::deque<std::uint32_t> turns_;  ///< owners with work that no thread is busy with
  std::size_t idle_{0};
  bool ends_{false};
  std::vector<std::thread> threads_;
};

}  // namespace hpcbatch
