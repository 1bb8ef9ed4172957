// The engine's end of a relay's byte stream: the connections of many pilots come out of it.
#pragma once

#include "loop/asio.hpp"
#include "wire/relay.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace hpcbatch {

// A pilot's connection that comes by another way than a socket of its own: what the way brings goes
// in here, and the link server has the other end of a pair of sockets.

/// Of the loop's thread only.
class Tunnel : public std::enable_shared_from_this<Tunnel> {
 public:
  struct Callbacks {
    /// What the engine says to the pilot; at most what `may_say` has allowed.
    std::function<void(std::string bytes)> said;
    /// So many bytes of the pilot's were taken by the engine.
    std::function<void(std::size_t bytes)> taken;
    /// The engine has closed it; nothing is called behind this.
    std::function<void()> closed;
  };

  /// Nothing where no descriptors are left.
  static std::shared_ptr<Tunnel> make(asio::io_context& loop, Callbacks callbacks);
  Tunnel(const Tunnel&) = delete;
  Tunnel& operator=(const Tunnel&) = delete;

  /// Once: the link server's end.
  asio::generic::stream_protocol::socket take_far_end();
  /// The engine may say so many bytes more than it was allowed before.
  void may_say(std::size_t bytes);
  /// From the pilot.
  void hear(std::string_view bytes);
  /// The way has ended.  What was heard before still arrives; no callback is called any more.
  void close();

 private:
  Tunnel(asio::io_context& loop, Callbacks callbacks);
  void read();
  void write();
  void engine_closed();

  Callbacks callbacks_;
  asio::local::stream_protocol::socket near_;
  asio::local::stream_protocol::socket far_;
  std::string room_;
  std::size_t allowed_{0};
  std::string waiting_;
  std::string writing_;
  bool is_reading_{false};
  bool is_closing_{false};
};

/// Of the loop's thread only.  Ends by itself when the relay closes its end, says what is no frame
/// or nothing at all for too long.
class RelayStream : public std::enable_shared_from_this<RelayStream> {
 public:
  struct Callbacks {
    /// The relay listens; the text of its addresses.
    std::function<void(const std::string& addresses)> listening;
    /// A pilot has connected; this is its end for the link server.
    std::function<void(asio::generic::stream_protocol::socket)> connected;
    /// Why; nothing is called behind this.
    std::function<void(const std::string& why)> ended;
  };

  /// Takes the descriptor.
  RelayStream(asio::io_context& loop, int descriptor, Callbacks callbacks);
  RelayStream(const RelayStream&) = delete;
  RelayStream& operator=(const RelayStream&) = delete;

  void start();
  /// Without a word to anybody.
  void close();

 private:
  void read();
  void heard(wire::RelayFrame& frame);
  void opened(std::uint32_t number);
  void say(const wire::RelayFrame& frame);
  void write();
  void watch();
  void end(const std::string& why);

  asio::io_context& loop_;
  Callbacks callbacks_;
  asio::posix::stream_descriptor stream_;
  asio::steady_timer timer_;
  wire::RelayFrames frames_;
  std::map<std::uint32_t, std::shared_ptr<Tunnel>> connections_;
  std::string room_;
  std::string waiting_;
  std::string writing_;
  std::chrono::steady_clock::time_point last_heard_;
  std::chrono::steady_clock::time_point last_said_;
};

}  // namespace hpcbatch
