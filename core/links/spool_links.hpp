// A site's links that are carried by files: the program on the site is run again and again and
// brings and takes what there is.
#pragma once

#include "links/relay_stream.hpp"
#include "loop/asio.hpp"
#include "loop/lane.hpp"
#include "model/site.hpp"
#include "plugin_host/plugin_host.hpp"
#include "sites/pilot_program.hpp"
#include "wire/wire.pb.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace hpcbatch {

/// Of the loop's thread only.  Exchanges have a lane and a login of their own: often while
/// something comes, ever less often while nothing does.
class SpoolLinks {
 public:
  using Connected = std::function<void(asio::generic::stream_protocol::socket)>;

  /// `prefix`: of the names of this engine's allocations.
  SpoolLinks(asio::io_context& loop, const PluginHost& plugins, const Site& site,
             const PilotProgram& program, std::string prefix, Connected connected);
  SpoolLinks(const SpoolLinks&) = delete;
  SpoolLinks& operator=(const SpoolLinks&) = delete;
  ~SpoolLinks();

  /// Whether the site has pilots that may come by it.
  void want(bool wanted);
  /// Whether there are pilots that came by it and have not gone.
  bool has_pilots() const { return !connections_.empty(); }

 private:
  struct Connection {
    std::shared_ptr<Tunnel> tunnel;
    std::uint64_t heard{0};                     // pieces of the pilot
    std::uint64_t said{0};                      // pieces for the pilot
    std::uint64_t waiting{0};                   // of these, that it has not taken
    std::string unsaid;                         // no piece yet
    std::deque<wire::SpoolPiece> on_their_way;  // the site has not said that they are there
    std::size_t not_allowed_yet{0};  // of what is there: the engine may say as much again once the
                                     // pilot has taken something
    bool is_closed{false};           // by the engine: the pilot is told
  };
  void exchange();
  wire::SpoolOrder order();
  void answered(const Result<wire::SpoolReport>& report, std::chrono::milliseconds took);
  /// Whether anything came of it.
  bool heard(const wire::SpoolReport& report);
  void begin_anew(const wire::SpoolReport& first);
  static void hear(Connection& from, const wire::SpoolPiece& piece);
  static bool passed_on(Connection& to, const wire::SpoolReport::Connection& shown);
  bool begin(const std::string& name);
  void wake();
  void look_after(std::chrono::milliseconds pause);
  bool new_tools();
  /// Once, until it is another one.
  void tell(const std::string& trouble);

  asio::io_context& loop_;
  const PluginHost& plugins_;
  Site site_;
  PilotProgram program_;
  std::string prefix_;
  Connected connected_;
  std::shared_ptr<ExchangeTools> tools_;
  CallLane calls_;
  asio::steady_timer timer_;
  std::map<std::string, Connection> connections_;
  std::string trouble_;  ///< as it was told last
  std::chrono::milliseconds pause_{0};
  unsigned failures_{0};
  bool wanted_{false};
  bool is_exchanging_{false};
  bool has_more_{false};
  bool has_heard_{false};  ///< of the site at all
  std::shared_ptr<bool> lives_{std::make_shared<bool>(true)};
};

}  // namespace hpcbatch
