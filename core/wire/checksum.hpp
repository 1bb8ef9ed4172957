// What tells bytes apart, and the order in which numbers lie in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace hpcbatch::wire {

// The checksum that tells a whole record from one that a crash cut off: CRC-32 as zlib has it.

/// Of `bytes` behind bytes whose checksum is `before`.
std::uint32_t crc32(std::string_view bytes, std::uint32_t before = 0);

/// CRC-32C (Castagnoli), by the processor where it knows how.
std::uint32_t crc32c(std::string_view bytes);

/// 64 hexadecimal digits.
std::string sha256_of(std::string_view bytes);

// What bytes are told apart by: their BLAKE2b-256, taken piece by piece.

class ContentHash {
 public:
  ContentHash();
  ContentHash(ContentHash&&) noexcept;
  ContentHash& operator=(ContentHash&&) noexcept;
  ~ContentHash();

  void add(std::string_view bytes);
  /// 64 hexadecimal digits; nothing may be added afterwards.
  std::string digits();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whole numbers as all our formats have them: the lowest byte first, whatever the machine.

/// Appends the sizeof(Number) bytes of an unsigned number.
template <class Number>
void append_number(std::string& out, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i)
    out += static_cast<char>((number >> (8 * i)) & 0xFFU);
}

/// The number at that place of `bytes`, which reach as far as the number does.
template <class Number>
Number number_at(std::string_view bytes, std::size_t at) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i)
    number |= static_cast<Number>(Number{static_cast<unsigned char>(bytes[at + i])} << (8 * i));
  return number;
}

}  // namespace hpcbatch::wire
