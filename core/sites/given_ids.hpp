// How far an engine's ids and starts have come, in a small file of each workspace that it sees: a home
// that was put back from a backup does not know what was given since.
#pragma once

#include <cstdint>
#include <string>

namespace hpcbatch {

struct GivenIds {
  std::uint64_t highest{0};  ///< id of a submission
  std::uint64_t starts{0};   ///< of the engine
  friend bool operator==(const GivenIds&, const GivenIds&) = default;
};

/// Zeros where there is no such file, or it is not ours alone.  `engine`: its name, because several
/// may share a workspace.
GivenIds read_given_ids(const std::string& workspace, const std::string& engine);
/// Makes no workspace.  What cannot be written is lost: the next time has more.
void write_given_ids(const std::string& workspace, const std::string& engine,
                     const GivenIds& given);

}  // namespace hpcbatch
