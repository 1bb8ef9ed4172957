// Database and log of a damaged store as one file, page by page, as far as their sums are right.
#pragma once

#include "store/salvage.hpp"

#include <string>

namespace hpcbatch::store {

/// `to`, which is made, is the database with all of its log in it, in rollback mode; a page that
/// cannot be believed has a wrong sum there.  Throws where it cannot be written.
void put_together(const std::string& file, const std::string& to, bool has_sums,
                  StoreReport& report, const SalvageSaid& said);

}  // namespace hpcbatch::store
