// A layer of an image: its blob is read once, held to its digests and its bounds while it flows, and unpacked on the way.
#pragma once

#include "pilot/images/image_tree.hpp"

#include <string>

namespace hpcbatch::pilot {

struct Layer {
  std::string blob;       // its path
  std::string digest;     // of the blob
  std::string diff_id;    // of what it unpacks to; empty: not said
  std::string said_size;  // of the blob, in digits; empty: not said
};

/// Into the tree.  Throws BadImage, with the tree half made: for damage, what is not what it says
/// that it is, more than the budget, and names that mean nothing.
void unpack_layer(const Layer& layer, ImageTree& tree, ImageBudget& budget);

}  // namespace hpcbatch::pilot
