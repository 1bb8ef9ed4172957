// What `hpcbatch --version` says.
#pragma once

#include <string>

namespace hpcbatch {

/// The version, the commit where the build was told of it, and what other programs must agree with: the wire of pilots, the
/// store, the border of plugins.
std::string version_text();

}  // namespace hpcbatch
