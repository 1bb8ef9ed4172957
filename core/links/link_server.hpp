// The listeners that pilots connect to, and the encrypted links that stand.
#pragma once

#include "hpcbatch/result.hpp"
#include "loop/asio.hpp"
#include "model/ids.hpp"
#include "wire/encrypted_link.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch {

// Peers at the listeners for pilots: how many may be there that have proved nothing yet, and
// those that were rejected.

// Peers that the listeners for pilots have rejected: how many for which reason, and
// which of them the log tells of.

enum class RejectionReason {
  UnknownPilot,    ///< a name that no pilot has, or has any more
  WrongKey,        ///< no proof of its key: a wrong one, or what was recorded of another link
  WrongHello,      ///< does not speak the wire at all
  WrongVersion,    ///< of the wire
  NoProof,         ///< said nothing, or not enough, in its time
  TooLong,         ///< announced a frame beyond the cap
  BrokenFrame,     ///< changed, repeated or left out; of a pilot that had proved its key
  BrokenMessage,   ///< likewise of such a pilot: a whole frame with no message in it
  TooManyAtATime,  ///< unproven peers of one listener
  Overstepped,     ///< a pilot that said what it may not, or more than any pilot says
};
constexpr std::size_t kRejectionReasons = 10;

/// As the API says it: `wrong_key`.
std::string_view word_of(RejectionReason reason);

class RejectedPeers {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// The line for the log, which is `text` and how many others went without one.  Nothing where
  /// there was one for this reason less than a minute ago: whoever connects can do so without end.
  std::optional<std::string> count(RejectionReason reason, const std::string& text, Time now);
  std::uint64_t of(RejectionReason reason) const { return at(reason).count; }
  /// Each reason's word and count, those that never were too.
  std::vector<std::pair<std::string_view, std::uint64_t>> counts() const;

 private:
  struct Tally {
    std::uint64_t count{0};
    std::uint64_t untold{0};
    std::optional<Time> told;
  };
  const Tally& at(RejectionReason reason) const {
    return tallies_[static_cast<std::size_t>(reason)];
  }

  std::array<Tally, kRejectionReasons> tallies_{};
};

// Peers at a listener that have not proved yet that they are pilots: how many there may be, and who
// goes for one more.

struct UnprovenPeer {
  std::string address;        ///< empty on a socket of this machine
  bool names_a_pilot{false};  ///< it has said hello as a pilot that is known
  std::chrono::steady_clock::time_point since;
};

struct PlaceForPeer {
  bool has_room{true};                ///< for the newcomer, once `goes` is gone
  std::optional<std::size_t> goes{};  ///< of those that are there
};

/// A pilot says hello at once, so silent ones go first, and the oldest of the address that has most
/// of them; then, of those that have said hello, one that has taken longer than any way is long.
PlaceForPeer place_for(const std::vector<UnprovenPeer>& unproven_peers, const std::string& address,
                       std::chrono::steady_clock::time_point now);

// How long it takes to a pilot and back: asked now and then with heartbeat numbers of the engine's
// own, told where it has changed.

class RoundTrip {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  /// The number to send now, where it is time to ask; only while there is work, so that an idle
  /// link stays idle.
  std::optional<std::uint64_t> ask(Moment now);
  /// Pilots count theirs from 1.
  static bool is_ours(std::uint64_t number) { return (number & kOurs) != 0; }
  /// What the engine should know anew, if anything.  A single answer that came late is not
  /// believed.
  std::optional<Duration> answered(std::uint64_t number, Moment now);

 private:
  static constexpr std::uint64_t kOurs = std::uint64_t{1} << 63;
  Duration believed() const;

  std::uint64_t asked_{0};
  std::optional<Moment> asked_at_;
  bool is_waiting_{false};
  std::deque<Duration> last_;
  Duration told_{0};
};

namespace wire {
class ToEngine;
class ToPilot;
}  // namespace wire

/// How long a peer may take to prove who it is, and then say nothing.
struct Patience {
  unsigned listener{0};  ///< unproven peers are counted for each listener by itself
  std::chrono::seconds handshake{5};
  std::chrono::seconds silence{40};  ///< pilots send a heartbeat every 10 s
};

/// One connection of a pilot that has proved who it is.  Ends of the loop's thread only.
class PilotLink : public std::enable_shared_from_this<PilotLink> {
 public:
  using Message = std::function<void(const std::shared_ptr<PilotLink>&, const wire::ToEngine&)>;
  using Closed = std::function<void(const std::shared_ptr<PilotLink>&)>;

  PilotLink(asio::generic::stream_protocol::socket socket, wire::Link link, Patience patience,
            Message message, Closed closed);
  PilotLink(const PilotLink&) = delete;
  PilotLink& operator=(const PilotLink&) = delete;
  ~PilotLink();

  void start();
  /// What is put here, `bytes` at most, goes out with all else that this turn of the loop adds: in
  /// one frame while that is small.  The reference is good until the next call.
  wire::ToPilot& outgoing(std::size_t bytes = 64);
  void close();
  /// Sends what is there, then closes.
  void close_after_sending();
  bool is_open() const { return open_; }
  bool established() const { return link_.established(); }
  unsigned listener() const { return patience_.listener; }
  /// Of one that is not established; since it came.
  UnprovenPeer as_unproven_peer() const;
  /// Closes for another unproven peer.
  void give_way();
  /// Sends what is there and closes; what comes meanwhile is not heard, and why is counted.
  void put_out(const std::string& why);
  PilotId pilot() const;
  struct Refusal {
    RejectionReason reason;
    std::string text;
  };
  /// Why its peer was rejected; nothing where it went by itself, or fell silent as a pilot may.
  const std::optional<Refusal>& refusal() const { return refusal_; }

  std::uint64_t incarnation{0};          ///< from its registration
  std::string way;                       ///< likewise: which of its addresses answered
  std::set<std::uint64_t> environments;  ///< that the pilot has been sent
  RoundTrip round_trip;

 private:
  void read();
  void write();
  void flush_soon();
  void seal_outgoing();
  void received(std::size_t bytes);
  void watch_silence();
  std::chrono::seconds silence_limit() const;
  void refuse(RejectionReason reason, const std::string& text);

  asio::generic::stream_protocol::socket socket_;
  wire::Link link_;
  Patience patience_;
  Message message_;
  Closed closed_;
  asio::steady_timer silence_;
  std::chrono::steady_clock::time_point last_heard_;
  std::unique_ptr<wire::ToPilot> outgoing_;
  std::size_t outgoing_bytes_{0};
  std::string sending_;
  std::vector<char> buffer_;
  std::string from_;  ///< for messages: where the peer's address says something
  std::optional<Refusal> refusal_;
  bool flushing_{false};
  bool writing_{false};
  bool open_{true};
  bool closing_{false};
  bool is_heard_{true};
};

/// Accepts on a Unix socket, and on TCP where a site needs it.
class LinkServer {
 public:
  LinkServer(asio::io_context& loop, wire::Link::FindKey find_key, PilotLink::Message message,
             PilotLink::Closed closed, std::size_t most_links = SIZE_MAX);
  LinkServer(const LinkServer&) = delete;
  LinkServer& operator=(const LinkServer&) = delete;
  ~LinkServer();

  /// `path` may not be in use; a dead socket there is replaced.
  Result<void> listen_unix(const std::string& path);
  /// On one numeric address; `port` 0 takes a free one, a port that is taken gives another. Returns
  /// the port.
  Result<std::uint16_t> listen_tcp(const std::string& address, std::uint16_t port);
  /// A connection that came otherwise.
  void adopt(asio::generic::stream_protocol::socket socket, Patience patience);

  const RejectedPeers& rejected_peers() const { return rejected_peers_; }

 private:
  template <class Acceptor>
  void accept(std::shared_ptr<Acceptor> acceptor);
  template <class Acceptor>
  void accept_next(std::shared_ptr<Acceptor> acceptor);
  bool make_room(const std::string& from, unsigned listener);
  void count(RejectionReason reason, const std::string& text);

  asio::io_context& loop_;
  wire::Link::FindKey find_key_;
  PilotLink::Message message_;
  PilotLink::Closed closed_;
  std::vector<std::function<void()>> close_acceptors_;
  std::size_t most_links_;
  std::set<std::shared_ptr<PilotLink>> links_;
  RejectedPeers rejected_peers_;
};

}  // namespace hpcbatch
