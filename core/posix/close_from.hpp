// What a program was started with and never asked for.
#pragma once

namespace hpcbatch {

/// Closes every descriptor from `first` on; none of them may be in use, in any thread.  Nothing fails.
void close_from(int first);

}  // namespace hpcbatch
