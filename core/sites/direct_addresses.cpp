#include "sites/direct_addresses.hpp"

#include "wire/node_addresses.hpp"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <fstream>
#include <utility>

namespace hpcbatch {
namespace {

/// Nobody listens there (RFC 863): a pilot that tries it looks into its file again.
constexpr std::uint16_t kDiscard = 9;

}  // namespace

std::vector<std::string> direct_addresses(const Site& site, std::vector<std::string> outward) {
  if (!site.interface.empty()) return {site.interface};
  std::erase_if(outward, wire::is_loopback);
  const bool is_here = site.scheduler == "local" && site.transport == "shared_fs";
  if (outward.empty() && is_here) return {"127.0.0.1"};
  return outward;
}

DirectAddresses::DirectAddresses(std::string remembered, Outward outward, Listen listen)
    : remembered_(std::move(remembered)), outward_(std::move(outward)), listen_(std::move(listen)) {
  std::ifstream in(remembered_);
  std::string address;
  unsigned port = 0;
  while (in >> address >> port) before_[address] = static_cast<std::uint16_t>(port);
}

bool DirectAddresses::look(const std::vector<Site>& sites) {
  bool is_changed = false;
  const std::vector<std::string> outward = outward_();
  for (const Site& site : sites) {
    if (!has_way(site, LinkKind::Direct)) continue;
    std::vector<std::string>& known = addresses_[site.name];
    std::vector<std::string> found = direct_addresses(site, outward);
    // No way out for a moment: the old ones may be there again in the next.
    if (found.empty()) found = known;
    if (found.empty() && warned_.insert("site " + site.name).second)
      spdlog::warn(
          "this machine has no address by which pilots of {} could reach it; they go another way, "
          "if there is one, or name it as the site's 'interface'",
          site.name);
    if (!known.empty() && found != known)
      spdlog::info("pilots of {} reach this machine at {} now, no longer at {}", site.name,
                   fmt::join(found, ", "), fmt::join(known, ", "));
    is_changed = is_changed || found != known;
    known = std::move(found);
    for (const std::string& address : known) is_changed = listen_at(address) || is_changed;
  }
  if (is_changed) remember();
  return is_changed;
}

/// Whether it has begun to.
bool DirectAddresses::listen_at(const std::string& address) {
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

std::vector<wire::Address> DirectAddresses::of(const Site& site) const {
  std::vector<wire::Address> told;
  const std::vector<std::string>& all = addresses_.at(site.name);
  for (const std::string& address : all) {
    for (const auto* ports : {&ports_, &before_}) {
      const auto port = ports->find(address);
      if (port == ports->end()) continue;
      told.push_back({wire::Address::Kind::Tcp, address, port->second});
      break;
    }
  }
  if (told.empty() && !all.empty())
    told.push_back({wire::Address::Kind::Tcp, all.front(), kDiscard});
  return told;
}

void DirectAddresses::remember() const {
  auto all = before_;
  for (const auto& [address, port] : ports_) all[address] = port;
  std::ofstream out(remembered_, std::ios::trunc);
  for (const auto& [address, port] : all) out << address << ' ' << port << '\n';
}

}  // namespace hpcbatch
