// What can be read of a table whose pages are not all good.
#pragma once

#include "store/file/sqlite.hpp"

#include <string>

namespace hpcbatch::store {

/// Copies the rows of `table` one by one from one database to the other, which has an open
/// transaction; a row is named by its columns, and one that is there already is replaced.  What a
/// bad page holds is left out; true: nothing was.  Throws where it cannot be written.
bool copy_rows(sqlite::Connection& from, sqlite::Connection& to, const std::string& table);

}  // namespace hpcbatch::store
