// The process of a drop box: all that opens files of users happens in it, and nothing of the engine's.
#pragma once

#include <string>
#include <string_view>

namespace hpcbatch {

/// The first word of its command line; the second one is the folder, for who lists processes.
inline constexpr std::string_view kServeBox = "serve-dropbox";

/// The file whose lock the processes of an engine share; -1 and errno where it cannot be opened.
/// Writable: NFS refuses the lock of a whole engine otherwise (flock(2)).
int open_box_lock(const std::string& file);

/// Serves the engine at kHandedOver until that one closes it or is gone.  Returns the exit code.
int serve_box();

}  // namespace hpcbatch
