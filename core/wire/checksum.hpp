// The checksum that tells a whole record from one that a crash cut off: CRC-32 as zlib has it.
#pragma once

#include <cstdint>
#include <string_view>

namespace hpcbatch::wire {

/// Of `bytes` behind bytes whose checksum is `before`.
std::uint32_t crc32(std::string_view bytes, std::uint32_t before = 0);

}  // namespace hpcbatch::wire
