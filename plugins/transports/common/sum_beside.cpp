#include "sum_beside.hpp"

#include <utility>

namespace hpcbatch {
namespace {

constexpr std::size_t kHandedOver = 512u << 10;
constexpr std::size_t kMostWaiting = 16;

}  // namespace

void SumBeside::add(std::string_view bytes) {
  size_ += bytes.size();
  if (gathered_.capacity() < kHandedOver && size_ >= kHandedOver) gathered_.reserve(kHandedOver);
  gathered_.append(bytes);
  if (gathered_.size() >= kHandedOver) hand_over();
}

void SumBeside::hand_over() {
  if (!thread_.joinable()) thread_ = std::thread([this] { sum(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.size() < kMostWaiting; });
  waiting_.push_back(std::exchange(gathered_, {}));
  lock.unlock();
  changed_.notify_one();
}

void SumBeside::sum() {
  for (std::unique_lock lock(mutex_);;) {
    changed_.wait(lock, [this] { return is_over_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::string bytes = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    changed_.notify_one();
    checksum_.add(bytes);
    lock.lock();
  }
}

void SumBeside::end() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

std::string SumBeside::text() {
  end();
  checksum_.add(std::exchange(gathered_, {}));
  return checksum_.text();
}

}  // namespace hpcbatch
