#include "sites/machine.hpp"

#include "hpcbatch/shell_quote.hpp"
#include "posix/files.hpp"
#include "wire/node_addresses.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

constexpr const char* kVisibleDevices = "CUDA_VISIBLE_DEVICES";

using Found = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

/// Of an address in numbers; nothing where it is none.
Found numeric(const std::string& address, int kind) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = kind;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  // A port that datagrams may be connected to.
  if (::getaddrinfo(address.c_str(), kind == SOCK_DGRAM ? "9" : "0", &hints, &found) != 0)
    found = nullptr;
  return {found, ::freeaddrinfo};
}

Fd socket_for(const addrinfo& address) {
  return Fd(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, 0));
}

std::int64_t usable_memory() {
  struct sysinfo info {};
  ::sysinfo(&info);
  const auto memory = static_cast<std::int64_t>(info.totalram) * info.mem_unit;
  std::ifstream own("/proc/self/cgroup");
  const std::string text{std::istreambuf_iterator<char>(own), {}};
  const auto limit = memory_limit(text, "/sys/fs/cgroup");
  return limit ? std::min(memory, *limit) : memory;
}

int nvidia_devices() {
  int count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename().string();
    const bool numbered =
        name.size() > 6 && name.starts_with("nvidia") &&
        std::all_of(name.begin() + 6, name.end(), [](unsigned char c) { return std::isdigit(c); });
    if (numbered) ++count;
  }
  return count;
}

/// Entries before the first that names no device, as CUDA reads its list.
int devices_in(const std::string& list) {
  int count = 0;
  std::istringstream entries(list);
  for (std::string entry;
       std::getline(entries, entry, ',') && entry != "-1" && entry != "NoDevFiles";)
    ++count;
  return count;
}

/// NVIDIA GPUs that this process may use.
int usable_gpus() {
  const int there = nvidia_devices();
  const char* visible = std::getenv(kVisibleDevices);
  return visible != nullptr && there > 0 ? devices_in(visible) : there;
}

/// Of the interface towards the world; empty where there is no such route.
std::string address_of_route() {
  // Nothing is sent: connecting a datagram socket only asks for the route (RFC 5737 and RFC 3849
  // reserve the addresses).
  for (const char* const far : {"192.0.2.1", "2001:db8::1"}) {
    const Found there = numeric(far, SOCK_DGRAM);
    const Fd probe = there ? socket_for(*there) : Fd();
    sockaddr_storage near{};
    socklen_t size = sizeof near;
    auto* const near_address = reinterpret_cast<sockaddr*>(&near);
    char text[NI_MAXHOST] = {};
    if (probe && ::connect(probe.get(), there->ai_addr, there->ai_addrlen) == 0 &&
        ::getsockname(probe.get(), near_address, &size) == 0 &&
        ::getnameinfo(near_address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
      return text;
  }
  return "";
}

/// Nobody listens there (RFC 863): a pilot that tries it looks into its file again.
constexpr std::uint16_t kDiscard = 9;

}  // namespace

std::optional<std::int64_t> memory_limit(const std::string& groups,
                                         const std::filesystem::path& root) {
  std::optional<std::int64_t> least;
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    // number:controllers:path, without controllers in the one hierarchy of v2
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool is_v2 = controllers == ",,";
    if (!is_v2 && controllers.find(",memory,") == std::string::npos) continue;
    const std::filesystem::path top = is_v2 ? root : root / "memory";
    // A limit holds for all below it.  In a container the path may be the host's, of which only the
    // top is seen.
    for (auto path = std::filesystem::path(line.substr(second + 1)).relative_path();;
         path = path.parent_path()) {
      std::ifstream in(top / path / (is_v2 ? "memory.max" : "memory.limit_in_bytes"));
      std::int64_t limit = 0;
      if (in >> limit && limit > 0) least = std::min(least.value_or(limit), limit);
      if (path.empty()) break;
    }
  }
  return least;
}

Resources this_machine() {
  Resources there;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  const int cpus = ::sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 1;
  there.set(kCpus, Amount::of(cpus));
  there.set(kMemory, Amount::of(usable_memory()));
  if (const int gpus = usable_gpus(); gpus > 0) there.set("gpus/nvidia", Amount::of(gpus));
  return there;
}

void complete_local_site(Site& site, const std::string& home) {
  if (site.workspace.empty()) site.workspace = home + "/workspace";
  if (site.shapes.empty()) site.shapes.push_back({.name = site.name});
  const Resources machine = this_machine();
  const char* visible = std::getenv(kVisibleDevices);
  const bool names_gpus =
      std::any_of(site.shapes.begin(), site.shapes.end(),
                  [](const Shape& shape) { return shape.capacity.gpus() != Amount{}; });
  // Pilots get a minimal environment, and are to use the devices that were counted.
  if (visible != nullptr && !names_gpus) {
    site.setup.insert(site.setup.begin(), fmt::format("export {}={}", kVisibleDevices,
                                                      shell_quoted(std::string_view(visible))));
  }
  for (Shape& shape : site.shapes) {
    for (const auto& [name, amount] : machine.entries()) {
      const bool gpu = name.starts_with(kGpuPrefix);
      if (shape.capacity.get(name) == Amount{} && !(gpu && shape.capacity.gpus() != Amount{}))
        shape.capacity.set(name, amount);
    }
  }
}

Site default_site(const std::string& home) {
  using namespace std::chrono_literals;
  Site site{.name = "local", .scheduler = "local", .transport = "shared_fs"};
  site.link = LinkKind::Unix;
  site.scheduler_config = "directory: '" + home + "/local'\n";
  // One pilot has the whole machine; it stays warm for a while, because the next command follows
  // soon.
  site.max_queued = 1;
  site.max_running = 1;
  site.idle_after = 10min;
  site.poll_every = 10s;
  site.settle_after = kSettleAfterHere;
  complete_local_site(site, home);
  return site;
}

std::vector<std::string> outward_addresses() {
  constexpr std::size_t kMostTold = 3;
  std::vector<std::string> found;
  if (std::string routed = address_of_route(); !routed.empty() && !wire::is_loopback(routed))
    found.push_back(std::move(routed));
  for (std::string& one : wire::addresses_for_others(wire::own_addresses())) {
    if (std::find(found.begin(), found.end(), one) == found.end()) found.push_back(std::move(one));
  }
  if (found.size() > kMostTold) found.resize(kMostTold);
  return found;
}

bool has_address(const std::string& address) {
  const Found here = numeric(address, SOCK_STREAM);
  const Fd probe = here ? socket_for(*here) : Fd();
  return probe && ::bind(probe.get(), here->ai_addr, here->ai_addrlen) == 0;
}

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
