// The sum that finds changed bits: that of SQLite's write-ahead log, which must be read here too
// (sqlite.org/fileformat2.html, section 4.2), and of our own blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hpcbatch::store {

struct Sum {
  std::uint32_t first{0}, second{0};
  friend bool operator==(const Sum&, const Sum&) = default;
};

enum class Words : std::uint8_t { Little, Big };

/// `bytes`, a multiple of 8 of them, behind what `before` is the sum of.
Sum sum_of(Sum before, std::string_view bytes, Words words = Words::Little);

/// The one bit, counted from 0, without whose change the sum of these would be `wanted` instead of
/// `is`; nothing where none explains it, or more than one: of the upper eight bits of a word many do.
/// Takes one walk over them.
std::optional<std::size_t> changed_bit(std::string_view bytes, Sum is, Sum wanted,
                                       Words words = Words::Little);

std::uint32_t big_endian(const char* bytes);
void put_big_endian(char* bytes, std::uint32_t value);

}  // namespace hpcbatch::store
