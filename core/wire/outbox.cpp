#include "wire/outbox.hpp"

#include "wire/checksum.hpp"
#include "wire/whole_file.hpp"

#include <cstring>

namespace hpcbatch::wire {
namespace {

constexpr std::string_view kOutboxMagic = "hpcbatch outbox 1\n";

/// Takes little-endian numbers and counted bytes off the front; remembers when something was
/// missing.
class Taker {
 public:
  explicit Taker(std::string_view bytes) : rest_(bytes) {}
  template <class Integer>
  Integer take() {
    Integer value{};
    const std::string_view bytes = take_bytes(sizeof value);
    if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view take_bytes(std::size_t count) {
    if (count > rest_.size()) {
      short_ = true;
      rest_ = {};
      return {};
    }
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  bool whole() const { return !short_ && rest_.empty(); }
  bool cut_off() const { return short_; }

 private:
  std::string_view rest_;
  bool short_{false};
};

Error damaged_outbox(const std::string& what) {
  return Error{Error::Kind::Rejected, "the outbox is damaged_outbox: " + what};
}

}  // namespace

std::string outbox_name(const PilotName& pilot) {
  return "outbox/" + pilot.allocation + "." + std::to_string(pilot.rank);
}

std::string encode(const Outbox& outbox) {
  std::string bytes(kOutboxMagic);
  append_number(bytes, static_cast<std::uint8_t>(outbox.pilot.allocation.size()));
  bytes += outbox.pilot.allocation;
  append_number(bytes, outbox.pilot.rank);
  append_number(bytes, outbox.incarnation);
  append_number(bytes, static_cast<std::uint32_t>(outbox.results.size()));
  for (const std::string& result : outbox.results) {
    append_number(bytes, static_cast<std::uint32_t>(result.size()));
    bytes += result;
  }
  append_number(bytes, crc32(bytes));
  return bytes;
}

hpcbatch::Result<Outbox> decode_outbox(std::string_view bytes) {
  if (!bytes.starts_with(kOutboxMagic))
    return damaged_outbox("it does not begin with 'hpcbatch outbox 1'");
  constexpr std::size_t kSumSize = 4;
  if (bytes.size() < kOutboxMagic.size() + kSumSize) return damaged_outbox("it is cut off");
  const std::string_view content = bytes.substr(0, bytes.size() - kSumSize);
  if (Taker(bytes.substr(content.size())).take<std::uint32_t>() != crc32(content)) {
    return damaged_outbox("its checksum is wrong");
  }
  Taker taker(content.substr(kOutboxMagic.size()));
  Outbox outbox;
  outbox.pilot.allocation = taker.take_bytes(taker.take<std::uint8_t>());
  outbox.pilot.rank = taker.take<std::uint32_t>();
  outbox.incarnation = taker.take<std::uint64_t>();
  const auto count = taker.take<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && !taker.cut_off(); ++i) {
    outbox.results.emplace_back(taker.take_bytes(taker.take<std::uint32_t>()));
  }
  if (!taker.whole()) return damaged_outbox("its counts are wrong");
  return outbox;
}

hpcbatch::Result<Outbox> read_outbox(const std::string& path) {
  const auto bytes = read_file(path, Readers::OwnerOnly);
  if (!bytes) return bytes.error();
  auto outbox = decode_outbox(*bytes);
  if (!outbox) return Error{outbox.error().kind, path + ": " + outbox.error().text};
  return outbox;
}

hpcbatch::Result<void> write_outbox(const std::string& path, const Outbox& outbox) {
  return replace_file(path, encode(outbox), Readers::OwnerOnly);
}

}  // namespace hpcbatch::wire
