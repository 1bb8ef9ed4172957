// One end of an encrypted, authenticated link between a pilot and the engine: bytes in, bytes out,
// no I/O.
//
//   pilot                                   engine
//   hello    (plain, fixed size)      ->
//                                     <-    answer (plain, fixed size): version, ephemeral key
//   header, first frame: its proof    ->
//                                     <-    header, first frame: its proof
//   frames                           <->    frames
//
// The keys come from the pilot's key, both ephemeral keys and every plain byte of both, so that
// whoever lacks the pilot's key or changes a byte fails at the first frame, and whoever steals the
// key later reads nothing of before. An unknown pilot is answered like one with a wrong key.
// docs/formats.md has the bytes.
#pragma once

#include "hpcbatch/result.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::wire {

// The secret keys of links: one per allocation, from which each of its pilots has its own.

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

/// What a message may have at most; `Link::send` aborts beyond it.
constexpr std::size_t kLargestMessage = std::size_t{16} << 20;
constexpr std::size_t kLongestAllocationName = 15;
constexpr std::uint16_t kOldestVersion = 1;
constexpr std::uint16_t kNewestVersion = 1;

/// Which versions of the wire this end speaks.
struct Versions {
  std::uint16_t oldest{kOldestVersion};
  std::uint16_t newest{kNewestVersion};
};

struct PilotName {
  std::string allocation;
  std::uint32_t rank{};
  friend auto operator<=>(const PilotName&, const PilotName&) = default;
};

/// What the other end did that ended a link.
enum class LinkFault {
  Hello,         ///< not the wire of hpcbatch
  Version,       ///< none that both speak
  UnknownPilot,  ///< a name for which no pilot is expected
  Proof,         ///< none of the pilot's key; what was recorded of another link is none either
  Length,        ///< a frame larger than one may be was announced
  Frame,         ///< changed on its way, repeated, left out or too short
};

class Link {
 public:
  /// The key of the pilot of that name, or nothing where no such pilot is expected.
  using FindKey = std::function<std::optional<Key>(const PilotName&)>;

  /// The pilot's end.  `key` is the pilot's own (`pilot_key`).
  static Link connecting(PilotName self, const Key& key, Versions versions = {});
  /// The engine's end; `find_key` is called once, when the hello is there.
  static Link accepting(FindKey find_key, Versions versions = {});

  Link(Link&&) noexcept;
  Link& operator=(Link&&) noexcept;
  ~Link();

  /// Bytes to be sent to the other end, in order; empty when there are none.
  std::string take_output();
  bool has_output() const;

  /// Takes bytes as they came and returns the messages that they completed.  An error means: drop
  /// the link.
  hpcbatch::Result<std::vector<std::string>> receive(std::string_view bytes);

  /// Messages sent before the link stands are kept until it does.
  void send(std::string_view message);

  /// Why `receive` failed first; nothing while it has not.  Not for the other end to know.
  std::optional<LinkFault> fault() const;

  /// The other end has proved that it has the key.
  bool established() const;
  /// Who the other end is (engine's end), or who we are (pilot's end).  Proved only once
  /// established.
  const PilotName& peer() const;
  /// Of one that accepts: its peer has said hello as a pilot that is known, and has not proved it
  /// yet.
  bool names_a_pilot() const;
  /// The version that both speak; 0 before that is known.
  std::uint16_t version() const;

 private:
  struct State;
  explicit Link(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hpcbatch::wire
