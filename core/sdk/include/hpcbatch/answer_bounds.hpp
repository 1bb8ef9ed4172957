// How much of what a batch system or a command on a site answers is read.  More is cut off or refused,
// for it may be another user's doing: nothing that is read grows without end.
#pragma once

#include <cstddef>

namespace hpcbatch {

/// Bytes on standard output, and as many on standard error.  A command that prints more is an error.
inline constexpr std::size_t kMostOutput = 64u << 20;
/// MAX_SLURM_NODES.
inline constexpr std::size_t kMostNodesOfAJob = 65'536;
/// Of all batch jobs and partitions in one answer together, written out.
inline constexpr std::size_t kMostNodesInAnAnswer = 1'000'000;
/// HOST_NAME_MAX and more; what a node is called, with its domain.
inline constexpr std::size_t kLongestNodeName = 255;

}  // namespace hpcbatch
