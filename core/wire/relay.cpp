#include "wire/relay.hpp"

#include "wire/checksum.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>

namespace hpcbatch::wire {
namespace {

// kind, connection, length: 1 + 4 + 4 bytes, the lowest byte first.
constexpr std::size_t kHeader = 9;
constexpr std::size_t kNumber = 4;

Error broken(const std::string& what) {
  return {Error::Kind::Rejected, "the relay's stream is broken: " + what};
}

}  // namespace

void append(std::string& out, const RelayFrame& frame) {
  out += static_cast<char>(frame.kind);
  append_number(out, frame.connection);
  if (frame.kind == RelayFrame::Kind::Taken) {
    append_number(out, static_cast<std::uint32_t>(kNumber));
    append_number(out, frame.taken);
  } else {
    append_number(out, static_cast<std::uint32_t>(frame.bytes.size()));
    out += frame.bytes;
  }
}

hpcbatch::Result<std::vector<RelayFrame>> RelayFrames::receive(std::string_view bytes) {
  rest_ += bytes;
  std::vector<RelayFrame> frames;
  std::size_t done = 0;
  while (rest_.size() - done >= kHeader) {
    const auto kind = static_cast<unsigned char>(rest_[done]);
    if (kind < static_cast<unsigned char>(RelayFrame::Kind::Listening) ||
        kind > static_cast<unsigned char>(RelayFrame::Kind::Ended))
      return broken("a frame of kind " + std::to_string(kind));
    const std::size_t length = number_at<std::uint32_t>(rest_, done + 1 + kNumber);
    if (length > kLargestRelayFrame)
      return broken("a frame of " + std::to_string(length) + " bytes");
    if (rest_.size() - done < kHeader + length) break;
    RelayFrame frame{.kind = static_cast<RelayFrame::Kind>(kind),
                     .connection = number_at<std::uint32_t>(rest_, done + 1),
                     .taken = 0,
                     .bytes = {}};
    if (frame.kind == RelayFrame::Kind::Taken) {
      if (length != kNumber) return broken("a count of " + std::to_string(length) + " bytes");
      frame.taken = number_at<std::uint32_t>(rest_, done + kHeader);
    } else {
      frame.bytes = rest_.substr(done + kHeader, length);
    }
    frames.push_back(std::move(frame));
    done += kHeader + length;
  }
  rest_.erase(0, done);
  return frames;
}

std::string relay_file(const std::string& workspace) {
  return workspace + "/relay";
}

hpcbatch::Result<std::vector<Address>> parse_relay_file(std::string_view text,
                                                        const std::string& name) {
  constexpr std::string_view kWord = "address ";
  std::vector<Address> addresses;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    auto address =
        line.starts_with(kWord) ? parse_address(line.substr(kWord.size())) : std::nullopt;
    if (!address || address->kind != Address::Kind::Tcp)
      return Error{Error::Kind::Rejected,
                   name + ": expected lines 'address tcp NUMERIC-ADDRESS PORT'"};
    addresses.push_back(std::move(*address));
  }
  if (addresses.empty()) return Error{Error::Kind::Rejected, name + " is empty"};
  return addresses;
}

namespace {

constexpr std::string_view kPieceMark = "hbspool1";
constexpr std::string_view kExchangeMark = "hbexchg1";
constexpr std::size_t kNameLength = 10;

std::string hex(std::uint64_t number) {
  std::array<char, 17> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, 16).ptr;
  std::string digits(text.data(), end);
  return std::string(16 - digits.size(), '0') + digits;
}

/// mark, number, length, checksum of all before it and of the bytes, bytes.
std::string sealed(std::string_view mark, std::uint64_t number, std::string_view bytes) {
  std::string file(mark);
  append_number(file, number);
  append_number(file, static_cast<std::uint32_t>(bytes.size()));
  append_number(file, crc32(bytes, crc32(file)));
  file += bytes;
  return file;
}

hpcbatch::Result<std::string> opened(std::string_view mark, std::uint64_t number,
                                     std::string_view file) {
  const auto not_yet = [](const std::string& why) { return Error{Error::Kind::Transient, why}; };
  const std::size_t header = mark.size() + sizeof(std::uint64_t) + 2 * sizeof(std::uint32_t);
  if (file.size() < header) return not_yet("it is cut off");
  if (!file.starts_with(mark)) return not_yet("it does not begin as one");
  const std::size_t checked = header - sizeof(std::uint32_t);
  if (number_at<std::uint64_t>(file, mark.size()) != number) return not_yet("it is another one's");
  if (number_at<std::uint32_t>(file, mark.size() + sizeof number) != file.size() - header)
    return not_yet("it is cut off");
  const std::string_view bytes = file.substr(header);
  if (number_at<std::uint32_t>(file, checked) != crc32(bytes, crc32(file.substr(0, checked))))
    return not_yet("its checksum is wrong");
  return std::string(bytes);
}

}  // namespace

std::string spool_folder(const std::string& workspace) {
  return workspace + "/spool";
}

std::string spool_connection(const PilotName& pilot, std::uint64_t random) {
  return pilot.allocation + "." + std::to_string(pilot.rank) + "." + hex(random);
}

std::string piece_name(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(kNameLength - std::min(kNameLength, digits.size()), '0') + digits;
}

std::uint64_t piece_number(std::string_view name) {
  const std::uint64_t number = number_in<std::uint64_t>(name).value_or(0);
  // A piece has one name: another file may not stand for it.
  return piece_name(number) == name ? number : 0;
}

std::string sealed_piece(std::uint64_t number, std::string_view bytes) {
  return sealed(kPieceMark, number, bytes);
}

hpcbatch::Result<std::string> opened_piece(std::uint64_t number, std::string_view file) {
  return opened(kPieceMark, number, file);
}

std::string sealed_exchange(std::string_view message) {
  return sealed(kExchangeMark, 0, message);
}

hpcbatch::Result<std::string> opened_exchange(std::string_view bytes) {
  return opened(kExchangeMark, 0, bytes);
}

}  // namespace hpcbatch::wire
