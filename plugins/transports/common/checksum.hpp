// The checksum by which both sides of a copy agree: that of a program which is there.
#pragma once

#include <sodium.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace hpcbatch {

/// Of `b2sum -l 256` (a third of the cost of `sha256sum`), `sha256sum`, or POSIX's `cksum`.
enum class Sum : std::uint8_t { Blake2b, Sha256, Cksum };

/// By the program's name.
std::optional<Sum> sum_named(std::string_view program);

/// Of bytes as they come.
class Checksum {
 public:
  explicit Checksum(Sum sum);
  void add(std::string_view bytes);
  std::uint64_t size() const { return size_; }
  /// As the program prints it, without the file's name; ends the counting.
  std::string text();

 private:
  Sum sum_;
  crypto_generichash_state blake2b_{};
  crypto_hash_sha256_state sha256_{};
  std::uint32_t crc_{0};
  std::uint64_t size_{0};
};

std::string sha256_of(std::string_view text);

// A checksum that costs those who move the bytes no time of theirs.

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
