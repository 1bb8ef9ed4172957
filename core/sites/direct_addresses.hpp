// Where pilots reach this machine directly: its addresses for each site, and the ports that are
// listened at.
#pragma once

#include "model/site.hpp"
#include "wire/pilot_file.hpp"

#include "hpcbatch/result.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch {

/// The addresses that pilots of a site are told, of those by which other machines reach this one.
/// Loopback is right for pilots of this very machine alone.
std::vector<std::string> direct_addresses(const Site& site, std::vector<std::string> outward);

/// A machine's address changes while the engine runs (a lease of DHCP, a VPN that comes up), and
/// one site's that cannot be listened at now must not keep the others.  Of the loop's thread only.
class DirectAddresses {
 public:
  /// The machine's addresses towards others; none where there is no way out now.
  using Outward = std::function<std::vector<std::string>()>;
  /// At that port, or at another where it is taken; the port.
  using Listen =
      std::function<Result<std::uint16_t>(const std::string& address, std::uint16_t port)>;

  /// `remembered`: the file in which the ports outlast the engine, so that pilots find the next one
  /// without reading their file anew.
  DirectAddresses(std::string remembered, Outward outward, Listen listen);

  /// Finds the addresses of each site anew and listens where it does not yet.  True where pilots
  /// have to be told.
  bool look(const std::vector<Site>& sites);
  /// Of a site that was looked at.  Where nothing can be listened at now, what will probably hold.
  std::vector<wire::Address> of(const Site& site) const;

 private:
  bool listen_at(const std::string& address);
  void remember() const;

  std::string remembered_;
  Outward outward_;
  Listen listen_;
  std::map<std::string, std::vector<std::string>> addresses_;  // by site
  std::map<std::string, std::uint16_t> ports_;                 // that are listened at, by address
  std::map<std::string, std::uint16_t> before_;                // of the last engine
  std::set<std::string> warned_;  // addresses that could not be listened at, sites without any
};

}  // namespace hpcbatch
