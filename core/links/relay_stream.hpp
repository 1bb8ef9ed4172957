// The engine's end of a relay's byte stream: the connections of many pilots come out of it.
#pragma once

#include "links/tunnel.hpp"
#include "loop/asio.hpp"
#include "wire/relay.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace hpcbatch {

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
