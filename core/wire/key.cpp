#include "wire/key.hpp"

#include <sodium.h>
#include <cstdio>
#include <cstdlib>

namespace hpcbatch::wire {
namespace {

void start_sodium() {
  if (::sodium_init() < 0) {
    std::fputs("hpcbatch: the cryptographic library cannot start: no source of random numbers\n",
               stderr);
    std::abort();
  }
}

}  // namespace

Key random_key() {
  start_sodium();
  Key key;
  ::randombytes_buf(key.data(), key.size());
  return key;
}

std::uint64_t random_number() {
  start_sodium();
  std::uint64_t number = 0;
  ::randombytes_buf(&number, sizeof number);
  return number;
}

Key pilot_key(const Key& allocation_key, std::uint32_t rank) {
  start_sodium();
  std::string text = "hpcbatch pilot key 1 ";
  text += std::to_string(rank);
  Key key;
  ::crypto_generichash(key.data(), key.size(), reinterpret_cast<const unsigned char*>(text.data()),
                       text.size(), allocation_key.data(), allocation_key.size());
  return key;
}

std::string fingerprint(std::string_view bytes) {
  start_sodium();
  Key digest;
  ::crypto_generichash(digest.data(), digest.size(),
                       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr,
                       0);
  return to_hex(digest).substr(0, 16);
}

std::string to_hex(const Key& key) {
  std::string text(key.size() * 2 + 1, '\0');
  ::sodium_bin2hex(text.data(), text.size(), key.data(), key.size());
  text.pop_back();
  return text;
}

std::optional<Key> key_from_hex(std::string_view text) {
  Key key;
  std::size_t length = 0;
  if (text.size() != key.size() * 2) return std::nullopt;
  if (::sodium_hex2bin(key.data(), key.size(), text.data(), text.size(), nullptr, &length,
                       nullptr) != 0) {
    return std::nullopt;
  }
  if (length != key.size()) return std::nullopt;
  return key;
}

}  // namespace hpcbatch::wire
