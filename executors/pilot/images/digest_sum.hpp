// What a part of an image is known by: a sum over its bytes.
#pragma once

#include <sodium.h>

#include <string>
#include <string_view>

namespace hpcbatch::pilot {

/// The sum over bytes that a digest, "sha256:HEX" or "sha512:HEX", names.
class DigestSum {
 public:
  /// Throws BadImage for a digest of another kind.
  explicit DigestSum(const std::string& digest);
  void add(const void* bytes, std::size_t size);
  /// Once, at the end.
  bool matches();

 private:
  std::string digits_;
  bool is_long_{false};
  crypto_hash_sha256_state short_{};
  crypto_hash_sha512_state long_{};
};

/// Whether the bytes are those of the digest; throws as above.
bool matches_digest(const std::string& digest, std::string_view bytes);

}  // namespace hpcbatch::pilot
