#include "runtime/direct_doors.hpp"

#include <spdlog/spdlog.h>

#include <fstream>
#include <utility>

namespace hpcbatch {
namespace {

constexpr const char* kNoWayOut = "127.0.0.1";
/// Nobody listens there (RFC 863): a pilot that tries it looks into its file again.
constexpr std::uint16_t kDiscard = 9;

bool is_direct(const Site& site) {
  return has_way(site, LinkKind::Direct);
}

}  // namespace

DirectDoors::DirectDoors(std::string remembered, Outward outward, Listen listen)
    : remembered_(std::move(remembered)), outward_(std::move(outward)), listen_(std::move(listen)) {
  std::ifstream in(remembered_);
  std::string address;
  unsigned port = 0;
  while (in >> address >> port) before_[address] = static_cast<std::uint16_t>(port);
}

bool DirectDoors::look(const std::vector<Site>& sites) {
  bool is_changed = false;
  for (const Site& site : sites) {
    if (!is_direct(site)) continue;
    std::string& known = addresses_[site.name];
    std::string found = site.interface.empty() ? outward_() : site.interface;
    // No way out for a moment: the old one may be there again in the next.
    if (found == kNoWayOut && !known.empty()) found = known;
    if (!known.empty() && found != known)
      spdlog::info("pilots of {} reach this machine at {} now, no longer at {}", site.name, found,
                   known);
    is_changed = is_changed || found != known;
    known = std::move(found);
    is_changed = listen_at(known) || is_changed;
  }
  if (is_changed) remember();
  return is_changed;
}

/// Whether it has begun to.
bool DirectDoors::listen_at(const std::string& address) {
  if (ports_.contains(address)) return false;
  const auto before = before_.find(address);
  const auto port = listen_(address, before == before_.end() ? 0 : before->second);
  if (!port) {
    if (warned_.insert(address).second)
      spdlog::warn("{}; it is tried again every minute", port.error().text);
    return false;
  }
  warned_.erase(address);
  ports_[address] = *port;
  return true;
}

wire::Address DirectDoors::of(const Site& site) const {
  const std::string& address = addresses_.at(site.name);
  for (const auto* ports : {&ports_, &before_}) {
    const auto port = ports->find(address);
    if (port != ports->end()) return {wire::Address::Kind::Tcp, address, port->second};
  }
  return {wire::Address::Kind::Tcp, address, kDiscard};
}

void DirectDoors::remember() const {
  auto all = before_;
  for (const auto& [address, port] : ports_) all[address] = port;
  std::ofstream out(remembered_, std::ios::trunc);
  for (const auto& [address, port] : all) out << address << ' ' << port << '\n';
}

}  // namespace hpcbatch
