// hpcbatch-pilot relay WORKSPACE [ADDRESS]: on a login node, between the engine at the other end of
// its standard input and output and the pilots that connect from inside the cluster.  It passes
// sealed bytes on and keeps nothing.
#pragma once

#include "hpcbatch/result.hpp"
#include "pilot/base/loop.hpp"
#include "posix/files.hpp"
#include "wire/relay.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

// Where a relay listens for pilots, and the file in the workspace that says so.

class RelayListener {
 public:
  /// Listens on `address`, in numbers, or where it is empty on each address of this node that other
  /// nodes may reach: the private ones where there are any, else all but loopback.  The port of the
  /// relay before is taken again where it is free.
  static Result<RelayListener> open(const std::string& workspace, const std::string& address);

  RelayListener(RelayListener&&) = default;
  RelayListener& operator=(RelayListener&&) = delete;
  /// The file goes, unless it is another relay's by now.
  ~RelayListener();

  /// As it stands in the file: a line for each address.
  const std::string& text() const { return text_; }
  /// Another relay that ended late, or somebody who tidied up, may have removed it.
  void keep_file() const;
  const std::vector<Fd>& listeners() const { return listeners_; }

 private:
  RelayListener(std::string file, std::vector<Fd> listeners, std::string text);

  std::string file_;
  std::vector<Fd> listeners_;
  std::string text_;
};

class Relay {
 public:
  /// `listener` listens already.
  Relay(RelayListener listener, Fd from_engine, Fd to_engine);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Tells the engine why there will be no relay.
  static void cannot_begin(int to_engine, const std::string& why);

  /// Until the engine closes its end, or has not been heard for `kRelaySilence`.
  void run();

 private:
  struct Connection {
    Fd socket;
    std::string to_pilot;                    // not taken by the socket yet
    std::size_t window{wire::kRelayWindow};  // what the engine may still be sent
    bool is_closing{false};                  // behind what it has not taken yet
  };

  void hear_engine();
  void heard(wire::RelayFrame& frame);
  void hear_pilot(std::uint32_t number, std::uint32_t events);
  void write_to_pilot(std::uint32_t number);
  void take_pilot(Fd socket);
  void watch(std::uint32_t number);
  void drop(std::uint32_t number, bool engine_knows);
  void end(const std::string& why);
  void say(const wire::RelayFrame& frame);
  void write_to_engine();
  bool engine_is_behind() const { return unsent_.size() >= wire::kRelayWindow; }

  Loop loop_;
  RelayListener listener_;
  Fd from_engine_;
  Fd to_engine_;
  std::size_t most_connections_;
  wire::RelayFrames frames_;
  std::map<std::uint32_t, Connection> connections_;
  std::uint32_t last_number_{0};
  std::string unsent_;
  bool waits_to_write_{false};
  bool was_behind_{false};
  bool ended_{false};
  Time last_heard_;
  Time last_said_;
};

}  // namespace hpcbatch::pilot
