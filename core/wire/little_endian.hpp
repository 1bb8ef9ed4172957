// Whole numbers as all our formats have them: the lowest byte first, whatever the machine.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hpcbatch::wire {

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
