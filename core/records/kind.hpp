// What kind of task one is: those of a kind are expected to need alike.
#pragma once

#include <string>
#include <string_view>

namespace hpcbatch::records {

/// All that says of what kind a task is; each may be empty.
struct KindHints {
  std::string_view said;  ///< by who submits: a Snakemake rule, a Galaxy tool
  std::string_view tool;
  std::string_view name;     ///< of its submission, with the places for items as they were written
  std::string_view program;  ///< the first word of its command
};

/// The first of them that says something, of a program the last part of its path.  Numbers in names
/// are left out: those of `run 17` and `run 18` are one kind.  At most kLongestKind bytes, on one
/// line.
std::string kind_of(const KindHints& hints);
inline constexpr std::size_t kLongestKind = 100;

/// Where there are too many kinds to be told apart.
inline constexpr std::string_view kOtherKinds = "(others)";

}  // namespace hpcbatch::records
