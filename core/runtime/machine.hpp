// What this machine has: the shape of a local site that names none of its own.
#pragma once

#include "model/site.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

/// cpus that this process may use, memory (less where a control group grants less), NVIDIA GPUs by their device files.
Resources this_machine();

/// Fills in what a site of the scheduler `local` may leave out; `home` is where its workspace lies by default.
void complete_local_site(Site& site, const std::string& home);

/// The site that is there without any configuration.
Site default_site(const std::string& home);

/// Numeric addresses of this machine's interface towards the world; loopback where there is none.
std::string outward_address();

}  // namespace hpcbatch
