// The two checksums by which both sides of a copy agree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <sodium.h>

namespace hpcbatch {

/// SHA-256 and what POSIX's `cksum` prints, of bytes as they come.
class Checksum {
 public:
  Checksum() { crypto_hash_sha256_init(&sha256_); }
  void add(std::string_view bytes);
  std::uint64_t size() const { return size_; }
  /// In hexadecimal digits; ends the counting.
  std::string sha256();
  std::string cksum() const;

 private:
  crypto_hash_sha256_state sha256_;
  std::uint32_t crc_{0};
  std::uint64_t size_{0};
};

std::string sha256_of(std::string_view text);

}  // namespace hpcbatch
