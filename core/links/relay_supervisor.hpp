// Keeps one relay running on a site's login node for as long as the site has allocations: started
// over the transport, started again when it dies.
#pragma once

#include "links/relay_stream.hpp"
#include "loop/asio.hpp"
#include "loop/lane.hpp"
#include "model/site.hpp"
#include "plugin_host/plugin_host.hpp"
#include "sites/pilot_program.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace hpcbatch {

/// Of the loop's thread only.  The relay has a lane and a login of its own.
class RelaySupervisor {
 public:
  using Connected = std::function<void(asio::generic::stream_protocol::socket)>;

  RelaySupervisor(asio::io_context& loop, const PluginHost& plugins, const Site& site,
                  const PilotProgram& program, Connected connected);
  RelaySupervisor(const RelaySupervisor&) = delete;
  RelaySupervisor& operator=(const RelaySupervisor&) = delete;
  ~RelaySupervisor();

  /// Whether the site has pilots that may come by it.
  void want(bool wanted);

 private:
  /// The way back from a thread, which may have been left behind and outlive supervisor and loop.
  struct Back {
    std::mutex mutex;
    RelaySupervisor* supervisor;  // null: it is gone, or has begun anew
  };
  void start();
  void opened(const Result<int>& stream, std::shared_ptr<Transport> transport);
  void failed(const std::string& why);
  void start_at(std::chrono::steady_clock::time_point time);
  void stop();

  asio::io_context& loop_;
  const PluginHost& plugins_;
  Site site_;
  PilotProgram program_;
  Connected connected_;
  asio::steady_timer again_;
  std::unique_ptr<Lane> lane_;
  std::shared_ptr<RelayStream> stream_;
  std::shared_ptr<Transport> transport_;  ///< lives as long as the stream
  std::shared_ptr<Back> back_;
  std::optional<std::chrono::steady_clock::time_point> up_since_;  ///< it listens
  std::chrono::steady_clock::time_point not_before_;
  unsigned failures_{0};
  bool wanted_{false};
};

}  // namespace hpcbatch
