#include "checksum.hpp"

#include <array>

namespace hpcbatch {
namespace {

constexpr std::uint32_t kPolynomial = 0x04c11db7;

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte << 24;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc & 0x80000000u) != 0 ? (crc << 1) ^ kPolynomial : crc << 1;
    table[byte] = crc;
  }
  return table;
}
constexpr auto kTable = make_table();

std::uint32_t step(std::uint32_t crc, std::uint32_t byte) {
  return (crc << 8) ^ kTable[(crc >> 24) ^ byte];
}

}  // namespace

void Checksum::add(std::string_view bytes) {
  crypto_hash_sha256_update(&sha256_, reinterpret_cast<const unsigned char*>(bytes.data()),
                            bytes.size());
  for (const char c : bytes) crc_ = step(crc_, static_cast<unsigned char>(c));
  size_ += bytes.size();
}

std::string Checksum::sha256() {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash;
  crypto_hash_sha256_final(&sha256_, hash.data());
  std::string text;
  for (const unsigned char byte : hash) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string Checksum::cksum() const {
  std::uint32_t crc = crc_;
  for (std::uint64_t rest = size_; rest != 0; rest >>= 8) crc = step(crc, rest & 0xff);
  return std::to_string(~crc) + " " + std::to_string(size_);
}

std::string sha256_of(std::string_view text) {
  Checksum checksum;
  checksum.add(text);
  return checksum.sha256();
}

}  // namespace hpcbatch
