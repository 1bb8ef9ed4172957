#include "store/file/checksum.hpp"

#include <bit>
#include <cstring>

namespace hpcbatch::store {
namespace {

template <bool Swapped>
Sum added(Sum sum, std::string_view bytes) {
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    std::uint32_t word[2];
    std::memcpy(word, bytes.data() + at, sizeof word);
    if constexpr (Swapped) {
      word[0] = __builtin_bswap32(word[0]);
      word[1] = __builtin_bswap32(word[1]);
    }
    // In this order one addition waits for the one before it, not two: half the time.
    sum.first = (sum.first + word[0]) + sum.second;
    sum.second = (sum.second + word[1]) + sum.first;
  }
  return sum;
}

}  // namespace

Sum sum_of(Sum before, std::string_view bytes, Words words) {
  const bool native = (words == Words::Little) == (std::endian::native == std::endian::little);
  return native ? added<false>(before, bytes) : added<true>(before, bytes);
}

std::uint32_t big_endian(const char* bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

void put_big_endian(char* bytes, std::uint32_t value) {
  for (int i = 3; i >= 0; --i, value >>= 8) bytes[i] = static_cast<char>(value & 0xFF);
}

}  // namespace hpcbatch::store
