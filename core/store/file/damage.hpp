// Tells a damaged store from one whose machine has lost its power: pure.
#pragma once

#include "store/file/log_file.hpp"
#include "store/file/mark.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch::store {

/// What lies on the disk before anything is opened.
struct FoundFiles {
  bool has_database{false};  ///< there, and not empty
  std::string first_page;    ///< of it; shorter where the file is
  LogState log;
  bool has_mark{false};
  std::optional<MarkText> mark;  ///< where it can be read
  std::string boot;              ///< of this machine, now
};

/// A store that was put back from a copy that `backup` or `fsck --salvage` has made: it is not in
/// WAL mode yet.
bool is_copy(std::string_view first_page);

/// Why the store must not be opened, as the end of a sentence; nothing where it may.  What may be
/// missing is what was not on the disk when the power went, and nobody was told of.
std::optional<std::string> damage_of(const FoundFiles& files);

}  // namespace hpcbatch::store
