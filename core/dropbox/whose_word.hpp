// Decides on whose behalf a job file speaks.
#pragma once

#include <cstdint>
#include <string>

namespace hpcbatch {

/// The directory of a drop box, from its own descriptor.
struct FolderFacts {
  std::uint32_t owner{0};
  std::uint32_t mode{0};  ///< with the sticky bit; the group's bits are an ACL's mask, too
  bool can_be_swapped{
      false};  ///< others than its owner, us and root can rename it or a folder above
};

/// A job file, from its own descriptor.
struct JobFacts {
  std::uint32_t owner{0};
  std::uint32_t mode{0};
  std::uint64_t links{1};
  bool is_known{
      false};  ///< a document that we wrote or a job that was taken, whatever its name is now
};

/// Whether others than `us` (a user id) and root can put a file of `us` or root into the folder:
/// they cannot write its text there, but they can rename it from where they can.
bool others_can_put(const FolderFacts& folder, std::uint32_t us);

/// Why the folder can be no drop box of `us`: others could rename there what is not theirs, or we
/// cannot take what is not ours.  Empty: it can.
std::string why_no_dropbox(const FolderFacts& folder, std::uint32_t us);

/// Why the file is not its owner's word; empty: it is.  A file in a folder says only that somebody
/// who may rename put it there, so the owner of a file has spoken only where nobody else could have
/// done that:
///
///   owner of the file     is heard in a folder that
///   we, or root           only we and root can write, nor any above it (they could command us)
///   another               belongs to us, to root or to himself, and is sticky where others write
///
/// and never in a file that others can write, that has further names, or that we know already.
std::string why_nobodys_word(const FolderFacts& folder, const JobFacts& file, std::uint32_t us);

}  // namespace hpcbatch
