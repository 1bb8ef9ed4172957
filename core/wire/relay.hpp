// What engine and relay say to each other over one byte stream: the connections of many pilots,
// each with its own number and its own window.  What a pilot's connection carries is sealed by its
// link (link.hpp); a relay can neither read nor change it. docs/formats.md has the bytes.
#pragma once

#include "wire/pilot_file.hpp"

#include "hpcbatch/result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::wire {

struct RelayFrame {
  enum class Kind : std::uint8_t {
    Listening = 1,  ///< relay: `bytes` is the text of its addresses, as it put it into the
                    ///< workspace; the first frame
    Opened = 2,     ///< relay: a pilot has connected
    Data = 3,
    Taken = 4,  ///< so many bytes of this connection were passed on: the other end may send as many
                ///< more
    Closed = 5,  ///< nothing more goes either way
    Alive = 6,   ///< nothing else was to be said
    Ended = 7,   ///< relay: `bytes` says why; its last frame
  };
  Kind kind{Kind::Alive};
  std::uint32_t connection{0};  ///< 0 where the frame is of none
  std::uint32_t taken{0};       ///< of Taken
  std::string bytes;            ///< of Listening, Data and Ended; at most kLargestRelayFrame
  friend bool operator==(const RelayFrame&, const RelayFrame&) = default;
};

constexpr std::size_t kLargestRelayFrame = std::size_t{64} << 10;
/// Bytes of one connection that may be under way in one direction.
constexpr std::size_t kRelayWindow = std::size_t{4} << 20;
/// Who has nothing to say says so that often; who hears nothing for `kRelaySilence` takes the
/// stream for broken.
constexpr std::chrono::seconds kRelayAlive{10};
constexpr std::chrono::seconds kRelaySilence{40};

void append(std::string& out, const RelayFrame& frame);

/// Takes bytes as they come and gives the frames that they completed.
class RelayFrames {
 public:
  /// An error means: drop the stream.
  hpcbatch::Result<std::vector<RelayFrame>> receive(std::string_view bytes);

 private:
  std::string rest_;
};

/// "relay" in the workspace: where the relay that runs listens, a line "address tcp ADDRESS PORT"
/// each.
std::string relay_file(const std::string& workspace);
/// `name` stands in the error.
hpcbatch::Result<std::vector<Address>> parse_relay_file(std::string_view text,
                                                        const std::string& name);

}  // namespace hpcbatch::wire
