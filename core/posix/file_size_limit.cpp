#include "posix/file_size_limit.hpp"

#include <sys/resource.h>

namespace hpcbatch {

std::optional<std::uint64_t> file_size_limit(pid_t process) {
  rlimit limit{};
  if (::prlimit(process, RLIMIT_FSIZE, nullptr, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return limit.rlim_cur;
}

}  // namespace hpcbatch
