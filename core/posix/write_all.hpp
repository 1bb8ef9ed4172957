// All of a text to a descriptor.
#pragma once

#include <string_view>

namespace hpcbatch {

/// Blocks until all is written, also where the descriptor does not block.  Returns errno, 0 for
/// success.
int write_all(int descriptor, std::string_view text);

}  // namespace hpcbatch
