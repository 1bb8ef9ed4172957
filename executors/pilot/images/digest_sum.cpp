#include "pilot/images/digest_sum.hpp"

#include "pilot/images/image_tree.hpp"

#include <array>

namespace hpcbatch::pilot {

DigestSum::DigestSum(const std::string& digest) {
  const std::size_t colon = digest.find(':');
  const std::string kind = digest.substr(0, colon);
  if (colon != std::string::npos) digits_ = digest.substr(colon + 1);
  is_long_ = kind == "sha512";
  const std::size_t bytes = is_long_ ? crypto_hash_sha512_BYTES : crypto_hash_sha256_BYTES;
  if ((kind != "sha256" && !is_long_) || digits_.size() != 2 * bytes ||
      digits_.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw BadImage("'" + digest.substr(0, 100) +
                   "' is no digest that is known here (sha256, sha512)");
  ::crypto_hash_sha256_init(&short_);
  ::crypto_hash_sha512_init(&long_);
}

void DigestSum::add(const void* bytes, std::size_t size) {
  const auto* begin = static_cast<const unsigned char*>(bytes);
  if (is_long_) {
    ::crypto_hash_sha512_update(&long_, begin, size);
  } else {
    ::crypto_hash_sha256_update(&short_, begin, size);
  }
}

bool DigestSum::matches() {
  std::array<unsigned char, crypto_hash_sha512_BYTES> sum{};
  if (is_long_) {
    ::crypto_hash_sha512_final(&long_, sum.data());
  } else {
    ::crypto_hash_sha256_final(&short_, sum.data());
  }
  std::array<char, 2 * sum.size() + 1> digits{};
  ::sodium_bin2hex(digits.data(), digits.size(), sum.data(), digits_.size() / 2);
  return digits_ == digits.data();
}

bool matches_digest(const std::string& digest, std::string_view bytes) {
  DigestSum sum(digest);
  sum.add(bytes.data(), bytes.size());
  return sum.matches();
}

}  // namespace hpcbatch::pilot
