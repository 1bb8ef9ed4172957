// What can still be read of a damaged store.  The store itself is only read.
#pragma once

#include "hpcbatch/result.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::store {

/// `bad_pages` and `lost` are empty where all is well.
struct StoreReport {
  std::vector<std::string> faults;                          ///< one sentence each
  std::vector<std::pair<std::string, std::uint64_t>> rows;  ///< by table: read
  std::uint64_t mended{0};  ///< pages of which one bit was wrong, and is known
  bool is_good() const { return faults.empty(); }
};

/// Works on a copy in `folder`, which is removed; so much room is needed there.  No engine may use
/// the store meanwhile.
Result<StoreReport> look_through(const std::string& file, const std::string& folder);

/// The same, and writes what can be read to a new store, which must not be there yet.
Result<StoreReport> salvage(const std::string& file, const std::string& into);

}  // namespace hpcbatch::store
