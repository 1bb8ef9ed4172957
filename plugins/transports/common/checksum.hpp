// The checksum by which both sides of a copy agree: that of a program which is there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sodium.h>

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

}  // namespace hpcbatch
