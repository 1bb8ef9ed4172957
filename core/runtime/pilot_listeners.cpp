#include "runtime/pilot_listeners.hpp"

#include "sites/machine.hpp"
#include "wire/relay.hpp"

#include <sodium.h>

#include <algorithm>
#include <set>
#include <utility>

namespace hpcbatch {
namespace {

constexpr std::chrono::seconds kLookAtAddresses{60};

// A relay may be far away; files are seen when they are seen.
Patience by_relay(unsigned listener) {
  return {.listener = listener, .handshake = std::chrono::seconds(30)};
}
Patience by_spool(unsigned listener) {
  return {.listener = listener,
          .handshake = std::chrono::seconds(120),
          .silence = std::chrono::seconds(300)};
}

}  // namespace

PilotListeners::PilotListeners(Dependencies around)
    : dependencies_(std::move(around)), timer_(dependencies_.loop) {}

Result<void> PilotListeners::open() {
  if (auto listening = listen(); !listening) return listening;
  for (const Site& site : dependencies_.configured) open_ways(site);
  return {};
}

void PilotListeners::begin() {
  renew_pilot_files();
  keep_ways();
  keep_addresses();
}

bool PilotListeners::have_pilots_by_files() const {
  return std::any_of(spools_.begin(), spools_.end(),
                     [](const auto& spool) { return spool.second->has_pilots(); });
}

Result<void> PilotListeners::listen() {
  server_ = std::make_unique<LinkServer>(
      dependencies_.loop, [this](const wire::PilotName& pilot) { return key_of(pilot); },
      dependencies_.received, dependencies_.closed, dependencies_.most_links);
  socket_ = dependencies_.home + "/pilots";
  if (auto listening = server_->listen_unix(socket_); !listening) return listening;

  addresses_ =
      std::make_unique<DirectAddresses>(dependencies_.home + "/ports", outward_addresses,
                                        [this](const std::string& address, std::uint16_t port) {
                                          return server_->listen_tcp(address, port);
                                        });
  addresses_->look(dependencies_.configured);
  return {};
}

void PilotListeners::keep_addresses() {
  timer_.expires_after(kLookAtAddresses);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || dependencies_.is_stopped()) return;
    if (addresses_->look(dependencies_.configured)) renew_pilot_files();
    keep_addresses();
  });
}

std::optional<wire::Key> PilotListeners::key_of(const wire::PilotName& pilot) const {
  if (!dependencies_.engine) return std::nullopt;
  const AllocationEntry* entry = dependencies_.engine->sites().find(AllocationId{pilot.allocation});
  if (!entry) return std::nullopt;
  wire::Key allocation{};
  crypto_generichash(allocation.data(), allocation.size(),
                     reinterpret_cast<const unsigned char*>(pilot.allocation.data()),
                     pilot.allocation.size(),
                     reinterpret_cast<const unsigned char*>(dependencies_.secret.data()),
                     dependencies_.secret.size());
  return wire::pilot_key(allocation, pilot.rank);
}

wire::PilotFile PilotListeners::pilot_file(const AllocationId& id, const Site& site,
                                           const Shape& shape) const {
  wire::PilotFile file{.allocation = id.name, .site = site.name};
  crypto_generichash(file.key.data(), file.key.size(),
                     reinterpret_cast<const unsigned char*>(id.name.data()), id.name.size(),
                     reinterpret_cast<const unsigned char*>(dependencies_.secret.data()),
                     dependencies_.secret.size());
  for (const LinkKind way : link_ways(site)) {
    using Kind = wire::Address::Kind;
    if (way == LinkKind::Unix) file.addresses.push_back({Kind::Unix, socket_, 0});
    if (way == LinkKind::Relay)
      file.addresses.push_back({Kind::Relay, wire::relay_file(site.workspace), 0});
    if (way == LinkKind::Spool)
      file.addresses.push_back({Kind::Spool, wire::spool_folder(site.workspace), 0});
    if (way == LinkKind::Direct) {
      for (wire::Address& address : addresses_->of(site))
        file.addresses.push_back(std::move(address));
    }
  }
  file.workspace = site.workspace;
  file.scratch = site.scratch;
  file.gpu_test = site.gpu_test;
  file.shares_gpus_by_mps = site.shares_gpus_by_mps;
  file.history = dependencies_.history_folder();
  if (shape.capacity.gpus() != Amount{})
    file.gpu_helper = dependencies_.programs.at(site.name).gpu_helper_in(site.workspace);
  const Resources capacity = usable(shape);
  for (const auto& [name, amount] : capacity.entries())
    file.capacity.emplace_back(name, amount.ticks);
  const auto milliseconds = [](Duration d) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(d);
  };
  file.walltime = milliseconds(shape.walltime);
  file.margin = milliseconds(end_margin(shape.walltime));
  file.idle = milliseconds(site.idle_after);
  return file;
}

void PilotListeners::open_ways(const Site& site) {
  const PilotProgram& program = dependencies_.programs.at(site.name);
  if (has_way(site, LinkKind::Relay)) {
    relays_[site.name] =
        std::make_unique<RelaySupervisor>(dependencies_.loop, dependencies_.plugins, site, program,
                                          [this, listener = ++listeners_](auto socket) {
                                            server_->adopt(std::move(socket), by_relay(listener));
                                          });
  }
  if (has_way(site, LinkKind::Spool)) {
    spools_[site.name] = std::make_unique<SpoolLinks>(
        dependencies_.loop, dependencies_.plugins, site, program, "h" + dependencies_.engine_name,
        [this, listener = ++listeners_](auto socket) {
          server_->adopt(std::move(socket), by_spool(listener));
        });
  }
}

void PilotListeners::keep_ways() {
  if (relays_.empty() && spools_.empty()) return;
  std::set<std::string> busy;
  for (const auto& [id, entry] : dependencies_.engine->sites().allocations()) {
    if (entry.facts.state != AllocationState::Ended) busy.insert(entry.facts.site);
  }
  for (const auto& [name, relay] : relays_) relay->want(busy.contains(name));
  for (const auto& [name, spool] : spools_) spool->want(busy.contains(name));
}

void PilotListeners::renew_pilot_files() {
  for (const auto& [id, entry] : dependencies_.engine->sites().allocations()) {
    const auto at = dependencies_.sites.find(entry.facts.site);
    SiteClient* client = at == dependencies_.sites.end() ? nullptr : at->second.get();
    const Shape* shape = dependencies_.engine->sites().shape_of(id);
    if (client && shape && entry.facts.state != AllocationState::Ended) {
      client->renew_pilot_file(id, pilot_file(id, client->site(), *shape));
    }
  }
}

}  // namespace hpcbatch
