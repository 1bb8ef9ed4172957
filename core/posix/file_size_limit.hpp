// The limit on how large a file a process may write (ulimit -f, RLIMIT_FSIZE in getrlimit(2)).
#pragma once

#include <cstdint>
#include <optional>

#include <sys/types.h>

namespace hpcbatch {

/// In bytes; no value: there is none, or the process is not to be asked.  0: this process.
std::optional<std::uint64_t> file_size_limit(pid_t process = 0);

}  // namespace hpcbatch
