#include "dropbox/owner_lanes.hpp"

#include <utility>

namespace hpcbatch {

OwnerLanes::~OwnerLanes() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  news_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void OwnerLanes::post(std::uint32_t owner, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = waiting_.try_emplace(owner);
  at->second.push_back(std::move(work));
  if (!is_new) return;  // he waits for his turn already, or is being served
  turns_.push_back(owner);
  if (turns_.size() > idle_ && threads_.size() < most_) threads_.emplace_back([this] { serve(); });
  news_.notify_one();
}

void OwnerLanes::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    news_.wait(lock, [this] { return !turns_.empty() || ends_; });
    --idle_;
    if (turns_.empty()) return;
    const std::uint32_t owner = turns_.front();
    turns_.pop_front();
    const auto at = waiting_.find(owner);
    const std::function<void()> work = std::move(at->second.front());
    at->second.pop_front();
    lock.unlock();
    work();
    lock.lock();
    // Behind the others, who may have come meanwhile.
    if (at->second.empty()) {
      waiting_.erase(at);
    } else {
      turns_.push_back(owner);
      news_.notify_one();
    }
  }
}

}  // namespace hpcbatch
