// How full the nodes are that a look at the queue shows.
#pragma once

#include "hpcbatch/room_watcher.hpp"

namespace hpcbatch::slurm {

/// The shell's lines that print it, for `list_queue`.
extern const char* const kRoomLines;

/// Of the answer to `list_queue`.
WatchedRoom read_room(const CommandOutput& output);

}  // namespace hpcbatch::slurm
