// A checksum that costs those who move the bytes no time of theirs.
#pragma once

#include "checksum.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace hpcbatch {

/// Sums what it is given on a thread of its own, which there is only where it is worth one.
class SumBeside {
 public:
  explicit SumBeside(Sum sum) : checksum_(sum) {}
  SumBeside(const SumBeside&) = delete;
  SumBeside& operator=(const SumBeside&) = delete;
  ~SumBeside() { end(); }

  /// Waits where the thread is far behind.
  void add(std::string_view bytes);
  std::uint64_t size() const { return size_; }
  /// As the program prints it; ends the counting.
  std::string text();

 private:
  void hand_over();
  void sum();
  void end();

  std::uint64_t size_{0};
  std::string gathered_;
  Checksum checksum_;  // the thread's while there is one
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;
  bool is_over_{false};
  std::thread thread_;
};

}  // namespace hpcbatch
