// A site's links that are carried by files: the program on the site is run again and again and
// brings and takes what there is.
#pragma once

#include "model/site.hpp"
#include "plugin_host/plugin_host.hpp"
#include "runtime/asio.hpp"
#include "runtime/call_lane.hpp"
#include "runtime/carried.hpp"
#include "runtime/pilot_program.hpp"
#include "wire/wire.pb.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hpcbatch {

/// Of the loop's thread only.  Exchanges have a lane and a login of their own: often while
/// something comes, ever less often while nothing does.
class SpoolKeeper {
 public:
  using Connected = std::function<void(asio::generic::stream_protocol::socket)>;

  /// `prefix`: of the names of this engine's allocations.
  SpoolKeeper(asio::io_context& loop, const PluginHost& plugins, const Site& site,
              const PilotProgram& program, std::string prefix, Connected connected);
  SpoolKeeper(const SpoolKeeper&) = delete;
  SpoolKeeper& operator=(const SpoolKeeper&) = delete;
  ~SpoolKeeper();

  /// Whether the site has pilots that may come by it.
  void want(bool wanted);
  /// "is looked at", "is not wanted", or what is wrong with it.
  const std::string& state() const { return state_; }

 private:
  struct Connection {
    std::shared_ptr<Carried> carried;
    std::uint64_t heard{0};                      // pieces of the pilot
    std::uint64_t said{0};                       // pieces for the pilot
    std::string unsaid;                          // no piece yet
    std::vector<wire::SpoolPiece> on_their_way;  // written when an exchange comes back
    std::size_t not_allowed_yet{
        0};  // of what was written: the engine may say it again once the pilot has taken something
    bool is_closed{false};  // by the engine: the pilot is told
  };
  struct Tools {
    std::shared_ptr<Transport> transport;
    bool program_is_there{false};
  };

  void exchange();
  wire::SpoolOrder order();
  void answered(const Result<wire::SpoolReport>& report);
  void heard(const wire::SpoolReport& report);
  Connection& connection(const std::string& name);
  void wake();
  void look_after(std::chrono::milliseconds pause);
  bool new_tools();

  asio::io_context& loop_;
  const PluginHost& plugins_;
  Site site_;
  PilotProgram program_;
  std::string prefix_;
  Connected connected_;
  std::shared_ptr<Tools> tools_;
  CallLane calls_;
  asio::steady_timer timer_;
  std::map<std::string, Connection> connections_;
  std::string state_{"is not wanted"};
  std::chrono::milliseconds pause_{0};
  bool wanted_{false};
  bool is_exchanging_{false};
  bool has_more_{false};
  std::shared_ptr<bool> lives_{std::make_shared<bool>(true)};
};

}  // namespace hpcbatch
