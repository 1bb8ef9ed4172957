// Where pilots come in: our own listeners, relays and spools of the sites, and what a pilot's file
// says of them.
#pragma once

#include "engine/engine.hpp"
#include "links/link_server.hpp"
#include "links/relay_supervisor.hpp"
#include "links/spool_links.hpp"
#include "loop/asio.hpp"
#include "plugin_host/plugin_host.hpp"
#include "sites/machine.hpp"
#include "sites/pilot_program.hpp"
#include "sites/site_client.hpp"
#include "wire/encrypted_link.hpp"
#include "wire/pilot_file.hpp"
#include "wire/wire.pb.h"

#include "hpcbatch/result.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// On the loop's thread.
class PilotListeners {
 public:
  using Link = std::shared_ptr<PilotLink>;
  /// All that is named outlives this; the engine is there before `begin`.
  struct Dependencies {
    asio::io_context& loop;
    const PluginHost& plugins;
    const std::unique_ptr<Engine>& engine;
    const std::map<std::string, std::unique_ptr<SiteClient>>& sites;
    const std::map<std::string, PilotProgram>& programs;  ///< by site
    const std::vector<Site>& configured;
    std::string home;
    std::string engine_name;
    std::string secret;                           ///< the root of all pilots' keys
    std::size_t most_links;                       ///< to pilots, and to those who may be some
    std::function<std::string()> history_folder;  ///< empty: none
    std::function<bool()> is_stopped;             ///< the engine hears nothing more
    std::function<void(const Link&, const wire::ToEngine&)> received;
    std::function<void(const Link&)> closed;
  };
  explicit PilotListeners(Dependencies around);

  /// Listens, and makes ready what sites need.
  Result<void> open();
  /// Goes on by itself from then on.
  void begin();
  /// Relays and spools are there for sites that have allocations.
  void keep_ways();
  wire::PilotFile pilot_file(const AllocationId& id, const Site& site, const Shape& shape) const;
  /// Some are reached by an exchange of files alone, and hear late.
  bool have_pilots_by_files() const;
  /// Since this engine's start.
  const RejectedPeers& rejected_peers() const { return server_->rejected_peers(); }

 private:
  Result<void> listen();
  std::optional<wire::Key> key_of(const wire::PilotName& pilot) const;
  void keep_addresses();
  void renew_pilot_files();
  void open_ways(const Site& site);

  Dependencies dependencies_;
  std::string socket_;
  std::unique_ptr<LinkServer> server_;
  std::unique_ptr<DirectAddresses> addresses_;
  unsigned listeners_{0};  ///< of relays and spools; 0 is our own
  std::map<std::string, std::unique_ptr<RelaySupervisor>> relays_;  ///< by site
  std::map<std::string, std::unique_ptr<SpoolLinks>> spools_;
  asio::steady_timer timer_;
};

}  // namespace hpcbatch
