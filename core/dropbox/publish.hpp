// Puts a job's outputs where its client wants them: all or none.
#pragma once

#include "hpcbatch/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace hpcbatch {

struct Publication {
  std::string key;          ///< the output's name in the job
  std::string staged;       ///< where the task wrote it
  std::string destination;  ///< absolute
};

/// On whose behalf, and what that may touch.
struct PublishRights {
  std::uint32_t owner{0};          ///< user id of the job file's owner
  std::vector<std::string> allow;  ///< absolute
  std::string dropbox;             ///< its directory: never a destination
};

/// Whether all could be put there as things are now.  Writes nothing.
Result<void> check_destinations(const std::vector<Publication>& outputs,
                                const PublishRights& rights);

/// Checks again, through descriptors of the directories that are then used; makes each output ready
/// beside its destination, and then renames all.  After an error none is there.  What the task
/// wrote stays where it is, so that a repeat after a crash does the same again.  Only regular files
/// are published, no links.  Blocks.
Result<void> publish(const std::vector<Publication>& outputs, const PublishRights& rights);

}  // namespace hpcbatch
