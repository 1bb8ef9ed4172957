#include "pilot/processes/own_memory.hpp"

#include <algorithm>

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

namespace hpcbatch::pilot {

std::uint64_t OwnMemory::high_water() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

void OwnMemory::keep_small() {
  if (high_water() <= kept_ + kept_ / 4) return;
  ::malloc_trim(0);
  // proc(5), /proc/pid/clear_refs: 5 sets the peak to what is resident now.
  if (const int file = ::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC); file >= 0) {
    (void)!::write(file, "5", 1);
    ::close(file);
  }
  kept_ = std::max(kAsGoodAsNothing, high_water());
}

}  // namespace hpcbatch::pilot
