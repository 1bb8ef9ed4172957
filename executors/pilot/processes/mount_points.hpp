// Empty files and folders in an image that is a folder, at which something of the node is shown.
#pragma once

#include <string>

namespace hpcbatch::pilot {

/// True where something is at `path` in the image, or is now; a link on the way there is not
/// followed and left to the runtime.  Else false, with errno set.
bool make_mount_point(const std::string& image, const std::string& path, bool is_folder);

}  // namespace hpcbatch::pilot
