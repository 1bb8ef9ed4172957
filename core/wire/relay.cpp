#include "wire/relay.hpp"

#include "wire/little_endian.hpp"

#include <algorithm>

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

}  // namespace hpcbatch::wire
