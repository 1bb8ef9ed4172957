// What all users have in the queue, and on which nodes.
#pragma once

#include "hpcbatch/queue_watcher.hpp"
#include "hpcbatch/room_watcher.hpp"

namespace hpcbatch::slurm {

CommandLine list_queue();
Result<WatchedQueue> read_queue(const CommandOutput& output);

// How full the nodes are that a look at the queue shows.

/// The shell's lines that print it, for `list_queue`.
extern const char* const kRoomLines;

/// Of the answer to `list_queue`.
WatchedRoom read_room(const CommandOutput& output);

}  // namespace hpcbatch::slurm
