// The process of a drop box: all that opens files of users happens in it, and nothing of the engine's.
#pragma once

#include <string_view>

namespace hpcbatch {

/// The first word of its command line; the second one is the folder, for who lists processes.
inline constexpr std::string_view kServeBox = "serve-dropbox";

/// Serves the engine at kHandedOver until that one closes it or is gone.  Returns the exit code.
int serve_box();

}  // namespace hpcbatch
