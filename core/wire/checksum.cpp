#include "wire/checksum.hpp"

#include "wire/encrypted_link.hpp"

#include <sodium.h>

#include <array>
#include <bit>
#include <cstring>

namespace hpcbatch::wire {
namespace {

static_assert(std::endian::native == std::endian::little);

// Eight tables, so that eight bytes are taken at a step: all captured output passes here.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr std::uint32_t kOfZlib = 0xEDB88320U;
constexpr std::uint32_t kCastagnoli = 0x82F63B78U;

constexpr Tables make_tables(std::uint32_t polynomial) {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1) != 0 ? polynomial : 0U);
    }
    tables[0][byte] = value;
  }
  for (std::size_t table = 1; table < tables.size(); ++table) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t value = tables[table - 1][byte];
      tables[table][byte] = (value >> 8) ^ tables[0][value & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables(kOfZlib);
constexpr Tables kCastagnoliTables = make_tables(kCastagnoli);

std::uint32_t by_tables(const Tables& tables, std::string_view bytes, std::uint32_t crc) {
  while (bytes.size() >= 8) {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    std::memcpy(&low, bytes.data(), 4);
    std::memcpy(&high, bytes.data() + 4, 4);
    low ^= crc;
    crc = tables[7][low & 0xFF] ^ tables[6][(low >> 8) & 0xFF] ^ tables[5][(low >> 16) & 0xFF] ^
          tables[4][low >> 24] ^ tables[3][high & 0xFF] ^ tables[2][(high >> 8) & 0xFF] ^
          tables[1][(high >> 16) & 0xFF] ^ tables[0][high >> 24];
    bytes.remove_prefix(8);
  }
  for (const char c : bytes) {
    crc = (crc >> 8) ^ tables[0][(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  }
  return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) std::uint32_t by_processor(std::string_view bytes,
                                                             std::uint32_t crc) {
  std::uint64_t sum = crc;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, bytes.data(), 8);
    sum = __builtin_ia32_crc32di(sum, eight);
  }
  crc = static_cast<std::uint32_t>(sum);
  for (const char c : bytes) crc = __builtin_ia32_crc32qi(crc, static_cast<unsigned char>(c));
  return crc;
}
#endif

}  // namespace

std::uint32_t crc32(std::string_view bytes, std::uint32_t before) {
  return ~by_tables(kTables, bytes, ~before);
}

std::uint32_t crc32c(std::string_view bytes) {
#ifdef __x86_64__
  static const bool knows_how = __builtin_cpu_supports("sse4.2") != 0;
  if (knows_how) return ~by_processor(bytes, ~0U);
#endif
  return ~by_tables(kCastagnoliTables, bytes, ~0U);
}

std::string sha256_of(std::string_view bytes) {
  Key digest;
  static_assert(Key{}.size() == crypto_hash_sha256_BYTES);
  ::crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(bytes.data()),
                       bytes.size());
  return to_hex(digest);
}

struct ContentHash::State {
  crypto_generichash_state bytes;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {
  // It picks what is fast on this machine.
  static const int ready = ::sodium_init();
  (void)ready;
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
