// The listeners that pilots connect to, and the encrypted links that stand.
#pragma once

#include "links/rejected_peers.hpp"
#include "links/round_trip.hpp"
#include "links/unproven_peers.hpp"
#include "loop/asio.hpp"
#include "model/ids.hpp"
#include "wire/encrypted_link.hpp"

#include "hpcbatch/result.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch {

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
