#include "checksum.hpp"

#include <array>
#include <utility>

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

constexpr std::size_t kBlake2bBytes = 32;

std::string hexadecimal(const unsigned char* bytes, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += "0123456789abcdef"[bytes[i] >> 4];
    text += "0123456789abcdef"[bytes[i] & 15];
  }
  return text;
}

}  // namespace

std::optional<Sum> sum_named(std::string_view program) {
  if (program == "b2sum") return Sum::Blake2b;
  if (program == "sha256sum") return Sum::Sha256;
  if (program == "cksum") return Sum::Cksum;
  return std::nullopt;
}

Checksum::Checksum(Sum sum) : sum_(sum) {
  // It picks what is fast on this machine.
  static const int ready = ::sodium_init();
  (void)ready;
  ::crypto_generichash_init(&blake2b_, nullptr, 0, kBlake2bBytes);
  ::crypto_hash_sha256_init(&sha256_);
}

void Checksum::add(std::string_view bytes) {
  const auto* begin = reinterpret_cast<const unsigned char*>(bytes.data());
  switch (sum_) {
    case Sum::Blake2b:
      ::crypto_generichash_update(&blake2b_, begin, bytes.size());
      break;
    case Sum::Sha256:
      ::crypto_hash_sha256_update(&sha256_, begin, bytes.size());
      break;
    case Sum::Cksum:
      for (const char c : bytes) crc_ = step(crc_, static_cast<unsigned char>(c));
      break;
  }
  size_ += bytes.size();
}

std::string Checksum::text() {
  if (sum_ == Sum::Cksum) {
    std::uint32_t crc = crc_;
    for (std::uint64_t rest = size_; rest != 0; rest >>= 8) crc = step(crc, rest & 0xff);
    return std::to_string(~crc) + " " + std::to_string(size_);
  }
  std::array<unsigned char, kBlake2bBytes> digest{};
  static_assert(crypto_hash_sha256_BYTES == kBlake2bBytes);
  if (sum_ == Sum::Blake2b)
    ::crypto_generichash_final(&blake2b_, digest.data(), digest.size());
  else
    ::crypto_hash_sha256_final(&sha256_, digest.data());
  return hexadecimal(digest.data(), digest.size());
}

std::string sha256_of(std::string_view text) {
  Checksum checksum(Sum::Sha256);
  checksum.add(text);
  return checksum.text();
}

namespace {

constexpr std::size_t kHandedOver = 512u << 10;
constexpr std::size_t kMostWaiting = 16;

}  // namespace

void SumBeside::add(std::string_view bytes) {
  size_ += bytes.size();
  if (gathered_.capacity() < kHandedOver && size_ >= kHandedOver) gathered_.reserve(kHandedOver);
  gathered_.append(bytes);
  if (gathered_.size() >= kHandedOver) hand_over();
}

void SumBeside::hand_over() {
  if (!thread_.joinable()) thread_ = std::thread([this] { sum(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.size() < kMostWaiting; });
  waiting_.push_back(std::exchange(gathered_, {}));
  lock.unlock();
  changed_.notify_one();
}

void SumBeside::sum() {
  for (std::unique_lock lock(mutex_);;) {
    changed_.wait(lock, [this] { return is_over_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::string bytes = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    changed_.notify_one();
    checksum_.add(bytes);
    lock.lock();
  }
}

void SumBeside::end() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

std::string SumBeside::text() {
  end();
  checksum_.add(std::exchange(gathered_, {}));
  return checksum_.text();
}

}  // namespace hpcbatch
