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

std::optional<std::size_t> changed_bit(std::string_view bytes, Sum is, Sum wanted, Words words) {
  const Sum off{wanted.first - is.first, wanted.second - is.second};
  // What one more in the first and in the second word of a pair adds to the sum: from the last pair to
  // the first, each of which all pairs behind it have carried on.
  Sum of_word[2] = {{1, 1}, {0, 1}};
  std::optional<std::size_t> found;
  for (std::size_t at = bytes.size() / 8 * 8; at >= 8; at -= 8) {
    for (std::size_t word = 0; word < 2; ++word) {
      Sum& one = of_word[word];
      for (std::size_t bit = 0; bit < 32; ++bit) {
        const std::size_t place =
            (at - 8 + word * 4 + (words == Words::Little ? bit / 8 : 3 - bit / 8)) * 8 + bit % 8;
        const bool is_set = (static_cast<unsigned char>(bytes[place / 8]) >> (place % 8) & 1) != 0;
        const std::uint32_t by = is_set ? 0 - (1U << bit) : 1U << bit;
        if (one.first * by != off.first || one.second * by != off.second) continue;
        if (found) return std::nullopt;
        found = place;
      }
      one = {one.first + one.second, one.first + 2 * one.second};
    }
  }
  return found;
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
