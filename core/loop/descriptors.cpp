#include "loop/descriptors.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include <sys/resource.h>

namespace hpcbatch {
namespace {

// More than any engine needs; a limit of a thousand million would only make others count to it.
constexpr rlim_t kEnough = 65'536;
constexpr std::size_t kOwn = 256;

}  // namespace

DescriptorBudget budget_of(std::size_t limit) {
  const std::size_t own = std::min(kOwn, limit / 2);
  const std::size_t clients = std::max<std::size_t>((limit - own) / 3, 1);
  return {clients, std::max<std::size_t>(limit - own - clients, 1)};
}

DescriptorBudget raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return budget_of(1024);
  const rlim_t most = std::min(limit.rlim_max, kEnough);
  if (limit.rlim_cur < most) {
    const std::string before = std::to_string(limit.rlim_cur);
    const rlimit raised{most, limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) {
      ::setenv(kOpenFilesBefore, before.c_str(), 1);
      return budget_of(most);
    }
  }
  ::unsetenv(kOpenFilesBefore);  // another engine's, that has started us
  return budget_of(limit.rlim_cur);
}

}  // namespace hpcbatch
