// The secret keys of links: one per allocation, from which each of its pilots has its own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch::wire {

using Key = std::array<unsigned char, 32>;

Key random_key();

/// The key of the pilot on the node of this rank; of no use for any other pilot.
Key pilot_key(const Key& allocation_key, std::uint32_t rank);

/// A random number that no two processes draw: a pilot's incarnation.
std::uint64_t random_number();

/// 16 hexadecimal digits that other bytes do not have.
std::string fingerprint(std::string_view bytes);

std::string to_hex(const Key& key);
std::optional<Key> key_from_hex(std::string_view text);

}  // namespace hpcbatch::wire
