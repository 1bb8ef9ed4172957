// Small files that are read whole and replaced whole.
#pragma once

#include "hpcbatch/result.hpp"

#include <string>
#include <string_view>

namespace hpcbatch::wire {

enum class Readers { OwnerOnly, AsTheMaskSays };

/// With OwnerOnly a file that another user owns or that group or others may open is refused
/// (Rejected).
hpcbatch::Result<std::string> read_file(const std::string& path, Readers readers);

/// Written beside `path`, synced unless `sync` says otherwise, and renamed: whoever reads `path`
/// sees the old bytes or the new ones.
hpcbatch::Result<void> replace_file(const std::string& path, std::string_view bytes,
                                    Readers readers, bool sync = true);

}  // namespace hpcbatch::wire
