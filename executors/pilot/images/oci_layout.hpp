// A folder that is an OCI layout: what is in it, and a root file system unpacked from it.
#pragma once

#include "pilot/images/image_tree.hpp"

#include <string>

namespace hpcbatch::pilot {

/// The digest of the image that the tag names, or of the first one; empty: there is none.
std::string digest_in_layout(const std::string& layout, const std::string& tag);

/// Unpacks all layers of it to `tree`, which is made, with the image's variables in ch/environment.
/// Everything is held to its digests, and nothing is written but below `tree`.  Empty, or one
/// sentence; then what is there is half an image.  For a process beside the pilot's loop.
std::string unpack_layout(const std::string& layout, const std::string& tag,
                          const std::string& tree, const ImageBudget& budget = {});

}  // namespace hpcbatch::pilot
