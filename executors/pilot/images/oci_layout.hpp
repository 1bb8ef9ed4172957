// A folder that is an OCI layout: what is in it, and a root file system unpacked from it.
#pragma once

#include "pilot/images/image_tree.hpp"

#include <sodium.h>

#include <string>
#include <string_view>

namespace hpcbatch::pilot {

/// The digest of the image that the tag names, or of the first one; empty: there is none.
std::string digest_in_layout(const std::string& layout, const std::string& tag);

/// Unpacks all layers of it to `tree`, which is made, with the image's variables in ch/environment.
/// Everything is held to its digests, and nothing is written but below `tree`.  Empty, or one
/// sentence; then what is there is half an image.  For a process beside the pilot's loop.
std::string unpack_layout(const std::string& layout, const std::string& tag,
                          const std::string& tree, const ImageBudget& budget = {});

// A layer of an image: its blob is read once, held to its digests and its bounds while it flows, and unpacked on the way.

struct Layer {
  std::string blob;       // its path
  std::string digest;     // of the blob
  std::string diff_id;    // of what it unpacks to; empty: not said
  std::string said_size;  // of the blob, in digits; empty: not said
};

/// Into the tree.  Throws BadImage, with the tree half made: for damage, what is not what it says
/// that it is, more than the budget, and names that mean nothing.
void unpack_layer(const Layer& layer, ImageTree& tree, ImageBudget& budget);

// What a part of an image is known by: a sum over its bytes.

/// The sum over bytes that a digest, "sha256:HEX" or "sha512:HEX", names.
class DigestSum {
 public:
  /// Throws BadImage for a digest of another kind.
  explicit DigestSum(const std::string& digest);
  void add(const void* bytes, std::size_t size);
  /// Once, at the end.
  bool matches();

 private:
  std::string digits_;
  bool is_long_{false};
  crypto_hash_sha256_state short_{};
  crypto_hash_sha512_state long_{};
};

/// Whether the bytes are those of the digest; throws as above.
bool matches_digest(const std::string& digest, std::string_view bytes);

}  // namespace hpcbatch::pilot
