// What all users have in the queue, and on which nodes.
#pragma once

#include "hpcbatch/queue_watcher.hpp"
#include "hpcbatch/room_watcher.hpp"

#include <string>

namespace hpcbatch::pbs {

CommandLine list_queue(const std::string& dialect);
Result<WatchedQueue> read_queue(const CommandOutput& output);
/// How full its nodes are, by the same answer.
WatchedRoom read_room(const CommandOutput& output);

}  // namespace hpcbatch::pbs
