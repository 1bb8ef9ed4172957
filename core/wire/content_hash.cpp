#include "wire/content_hash.hpp"

#include "wire/key.hpp"

#include <sodium.h>

namespace hpcbatch::wire {

struct ContentHash::State {
  crypto_generichash_state bytes;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {
  ::crypto_generichash_init(&state_->bytes, nullptr, 0, Key{}.size());
}
ContentHash::ContentHash(ContentHash&&) noexcept = default;
ContentHash& ContentHash::operator=(ContentHash&&) noexcept = default;
ContentHash::~ContentHash() = default;

void ContentHash::add(std::string_view bytes) {
  ::crypto_generichash_update(&state_->bytes, reinterpret_cast<const unsigned char*>(bytes.data()),
                              bytes.size());
}

std::string ContentHash::digits() {
  Key digest;
  ::crypto_generichash_final(&state_->bytes, digest.data(), digest.size());
  return to_hex(digest);
}

}  // namespace hpcbatch::wire
