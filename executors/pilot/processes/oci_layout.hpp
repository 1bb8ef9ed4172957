// A folder that is an OCI layout: what is in it, and a root file system unpacked from it.
#pragma once

#include <string>

namespace hpcbatch::pilot {

/// The digest of the image that the tag names, or of the first one; empty: there is none.
std::string digest_in_layout(const std::string& layout, const std::string& tag);

/// Unpacks all layers of it to `tree`, which is made, with the image's variables in ch/environment.
/// Empty, or one sentence.  Runs tar; for a process beside the pilot's loop.
std::string unpack_layout(const std::string& layout, const std::string& tag,
                          const std::string& tree);

}  // namespace hpcbatch::pilot
