// Folders on the way to a file, the owner's alone.
#pragma once

#include <cstddef>
#include <string>

namespace hpcbatch::pilot {

/// The folders above `path` that lie behind its first `known` bytes, as far as they are not there;
/// false with errno set where one cannot be made.
bool make_folders_above(const std::string& path, std::size_t known);

}  // namespace hpcbatch::pilot
