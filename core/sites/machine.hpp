// What this machine has: the shape of a local site that names none of its own.
#pragma once

#include "model/site.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
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

}  // namespace hpcbatch
