// Everything of this machine that an engine trusts, held against the guard of trusted paths at its
// start, at a reload and by `doctor`.
#pragma once

#include "documents/configuration.hpp"
#include "documents/state_paths.hpp"
#include "model/site.hpp"

#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// Why the engine does not obey the file, which need not be there; nothing: it does.  `say` is told
/// what is used all the same.  Blocks on file systems and the user database, as all here.
std::optional<std::string> untrusted_configuration(const std::string& file,
                                                   std::vector<std::string>& said);

/// The same of the folder that the socket lies in.
std::optional<std::string> untrusted_socket_folder(const std::string& folder,
                                                   const std::string& trust_group,
                                                   std::vector<std::string>& said);

/// The same of state and socket, of sites' workspaces where this machine sees them, and of the
/// folders of plugins, tools and templates.
std::optional<std::string> untrusted_places(const Configuration& configuration,
                                            const Places& places, const std::vector<Site>& sites,
                                            std::vector<std::string>& said);

}  // namespace hpcbatch
