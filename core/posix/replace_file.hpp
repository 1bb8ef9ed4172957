// A file that whoever reads it sees as it was or as it is to be, and never half.
#pragma once

#include "posix/fd.hpp"

#include <sys/types.h>

#include <string>
#include <string_view>

namespace hpcbatch {

struct Replacement {
  mode_t mode{0600};
  bool against_umask{false};  ///< exactly this mode, whatever the umask is
  bool hidden{false};         ///< until it is whole: its name begins with a dot
  bool sync{true};            ///< the bytes survive a power loss, or the file is not there
  bool sync_folder{false};    ///< the name too
};

/// Writes the bytes beside `name` and renames.  `folder` is a descriptor, or AT_FDCWD.
/// What is half written is removed again; of one who is killed meanwhile a file whose name ends
/// with `.tmp` is left.  Returns errno, 0 for success; `file` then is open for writing, where it is
/// given.
int replace_file(int folder, const std::string& name, std::string_view bytes,
                 const Replacement& how, Fd* file = nullptr);

}  // namespace hpcbatch
