// What this machine has: the shape of a local site that names none of its own.
#pragma once

#include "hpcbatch/result.hpp"
#include "model/site.hpp"
#include "wire/pilot_file.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch {

/// cpus that this process may use, memory (less where a control group grants less), NVIDIA GPUs by
/// their device files and CUDA_VISIBLE_DEVICES.
Resources this_machine();

/// The least memory limit on the way from the top to the groups that /proc/self/cgroup (`groups`)
/// names; `root` is where control groups are mounted.
std::optional<std::int64_t> memory_limit(const std::string& groups,
                                         const std::filesystem::path& root);

/// Fills in what a site of the scheduler `local` may leave out; `home` is where its workspace lies
/// by default.
void complete_local_site(Site& site, const std::string& home);

/// The site that is there without any configuration.
Site default_site(const std::string& home);

/// The addresses, in numbers, by which other machines may reach this one, three at most, for each
/// that leads nowhere costs a pilot seconds: first that of its route to the world.  None where it
/// has nothing but loopback.
std::vector<std::string> outward_addresses();

/// Whether it can be listened at here now; numeric, of IPv4 or IPv6.
bool has_address(const std::string& address);

// Where pilots reach this machine directly: its addresses for each site, and the ports that are
// listened at.

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
