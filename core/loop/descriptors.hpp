// How many descriptors the engine may have, and who may have how many of them.
#pragma once

#include <cstddef>

namespace hpcbatch {

/// What clients and pilots leave is for files, commands and logins of our own.
struct DescriptorBudget {
  std::size_t clients{0};
  std::size_t pilots{0};
};

/// Of a limit on open files.
DescriptorBudget budget_of(std::size_t limit);

/// Raises this process's limit as far as it may be.  Commands that are run get the limit as it was:
/// it stands in the environment variable `kOpenFilesBefore`, for whoever runs them.
DescriptorBudget raise_open_files();
inline constexpr const char* kOpenFilesBefore = "HPCBATCH_OPEN_FILES";

}  // namespace hpcbatch
