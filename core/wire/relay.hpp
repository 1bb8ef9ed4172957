// Links that are carried by something else: by one byte stream for many pilots, or by files
// where nothing may connect.
#pragma once

#include "hpcbatch/result.hpp"
#include "wire/encrypted_link.hpp"
#include "wire/pilot_file.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::wire {

// What engine and relay say to each other over one byte stream: the connections of many pilots,
// each with its own number and its own window.  What a pilot's connection carries is sealed by its
// link (link.hpp); a relay can neither read nor change it. docs/formats.md has the bytes.

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

// A link that is carried by files, for clusters in which nothing may connect to anything: each
// direction of each connection is a folder of numbered pieces, written aside and renamed.  The
// pilot and the program that the engine runs on the site (spool_exchange) meet there.
// docs/formats.md has the bytes.

/// Bytes of one piece.
constexpr std::size_t kLargestPiece = std::size_t{1} << 20;
/// Pieces of one direction that the other end has not taken yet.
constexpr std::uint64_t kPiecesUnderWay = 8;

/// "spool" in the workspace.
std::string spool_folder(const std::string& workspace);
/// "NAME.RANK.RANDOM": the folder of one connection of a pilot.
std::string spool_connection(const PilotName& pilot, std::uint64_t random);

/// The name of a piece in its folder; numbers count from 1.
std::string piece_name(std::uint64_t number);
/// 0: no piece.
std::uint64_t piece_number(std::string_view name);

/// A piece as it stands in its file.
std::string sealed_piece(std::uint64_t number, std::string_view bytes);
/// Transient: it is not there as a whole yet.
hpcbatch::Result<std::string> opened_piece(std::uint64_t number, std::string_view file);

/// What one exchange is told and answers, as it goes through a command's standard input and output;
/// a serialized SpoolOrder or SpoolReport.
std::string sealed_exchange(std::string_view message);
hpcbatch::Result<std::string> opened_exchange(std::string_view bytes);

}  // namespace hpcbatch::wire
