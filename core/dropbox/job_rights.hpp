// What a job of a drop box may do: on whose behalf it speaks, what that user could do himself,
// and where results may be put.
#pragma once

#include "accounts/accounts.hpp"
#include "posix/trusted_path.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>
#include <sys/types.h>

namespace hpcbatch {

// Where a job may have its results put.

/// What was found out about a destination, from the directory's own descriptor.
struct DestinationFacts {
  enum class Existing { Nothing, File, Link, Other };
  std::string real_directory;  ///< without links
  std::uint32_t directory_owner{0};
  std::uint32_t directory_mode{0};
  bool is_dropbox{false};  ///< the directory is the drop box itself
  Existing existing{Existing::Nothing};
  std::uint32_t existing_owner{0};  ///< of a result that we published: its submitter
  bool submitter_can_write{false};  ///< the owner of the job could write the directory himself
  bool is_engines_user{false};      ///< the job is the engine's own user's
};

/// The rule: the directory belongs to the owner of the job file and nobody else can write it, or it
/// lies below one of `allow` (absolute, without links).  What stands there already may be replaced
/// only if it is a regular file, and the owner's, or in a directory allowed by name one that the
/// owner could have replaced himself (in a sticky one by its own owner only).  Empty: it may; else
/// why not.
std::string why_not_there(const DestinationFacts& facts, std::uint32_t owner_of_job,
                          const std::vector<std::string>& allow);

/// Whether the text can be a destination at all: absolute, with a name at its end, without `..`.
std::string why_no_destination(std::string_view path);

/// Whether `path` is `directory` or below it.
bool is_below(std::string_view path, std::string_view directory);

// Decides on whose behalf a job file speaks.

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

// What another user could do with a file, computed from mode and ACL: for engines that are not root
// and cannot ask the kernel in his name (accounts/as_user.hpp).  What a file server knows besides is
// not known here.

/// `right` as others have it: S_IROTH, S_IWOTH or S_IXOTH.
bool has_right(const UserRights& reader, const struct stat& status,
               const std::vector<AclEntry>& acl, mode_t right);

/// Lets a user read an open file of ours, by an ACL beside its mode; where the file system has none it
/// stays as it is.
void let_read(int file, std::uint32_t user);

/// Whether he may pass all folders above what lies at this path (absolute, without links).
bool can_reach(const UserRights& reader, std::string path);

/// Where an open file lies, without links; empty where it has no name.
std::string real_path_of(int descriptor);

}  // namespace hpcbatch
