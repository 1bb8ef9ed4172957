// What can be read of a table whose pages are not all good.
#pragma once

#include "store/file/sqlite.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace hpcbatch::store {

/// Throws where there is no such table.
std::vector<std::string> columns_of(sqlite::Connection& db, const std::string& table);
/// Those of `ours` that are not among `theirs`, in their order.
std::vector<std::string> not_among(const std::vector<std::string>& ours,
                                   const std::vector<std::string>& theirs);

/// Copies the rows of `table` one by one from one database to the other, which has an open
/// transaction; a row is named by its columns, and one that is there already is replaced.  What a
/// bad page holds is left out; true: nothing was.  Throws where it cannot be written.
/// `said` is told now and then how many rows there are so far.
bool copy_rows(sqlite::Connection& from, sqlite::Connection& to, const std::string& table,
               const std::function<void(const std::string& table, std::uint64_t rows,
                                        std::uint64_t)>& said = {});

}  // namespace hpcbatch::store
