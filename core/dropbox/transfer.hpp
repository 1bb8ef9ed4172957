// Copies the content of one open file to another.
#pragma once

#include "hpcbatch/result.hpp"

#include <string>
#include <string_view>

namespace hpcbatch {

/// From where both stand to the end; shares blocks where the file system can.  Blocks.
Result<void> copy_content(int from, int to);
/// Writes all of it.
Result<void> write_content(int to, std::string_view text);
/// `WHAT: reason`, from errno as it is now; a full disk and the like are transient.
Error errno_error(const std::string& what);

/// Renames within a directory, where nothing stands at `to`; false with errno EEXIST where
/// something does.  On a file system that knows neither RENAME_NOREPLACE nor hard links it looks
/// before.
bool rename_to_nothing(int directory, const std::string& from, const std::string& to);

}  // namespace hpcbatch
