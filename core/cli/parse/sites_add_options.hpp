// What `hpcbatch sites add` is told.
#pragma once

#include <functional>
#include <string>

namespace hpcbatch {

struct SitesAddOptions {
  std::string name;
  std::string scheduler;  ///< empty: what is found on this machine
  std::string host;       ///< of the login node; empty: this machine
  std::string user;       ///< there; empty: ours
  std::string transport;  ///< to that host: ssh or openssh
  std::string workspace;  ///< absolute, there
  std::string config;     ///< file; empty: where it is looked for
  bool yes{false};        ///< write without asking
};

/// Shows the entry, asks, and writes it; the exit code.
using SitesAddMain = std::function<int(const SitesAddOptions&)>;

}  // namespace hpcbatch
