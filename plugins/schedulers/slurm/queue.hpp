// What all users have in the queue, and on which nodes.
#pragma once

#include "hpcbatch/queue_watcher.hpp"

namespace hpcbatch::slurm {

CommandLine list_queue();
Result<WatchedQueue> read_queue(const CommandOutput& output);

}  // namespace hpcbatch::slurm
