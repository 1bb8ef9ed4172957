// What all users have in the queue, and on which nodes.
#pragma once

#include "hpcbatch/queue_history.hpp"
#include "hpcbatch/queue_watcher.hpp"
#include "hpcbatch/room_watcher.hpp"
#include "hpcbatch/survey.hpp"

namespace hpcbatch::slurm {

CommandLine list_queue();
Result<WatchedQueue> read_queue(const CommandOutput& output);

// How full the nodes are that a look at the queue shows.

/// The shell's lines that print it, for `list_queue`.
extern const char* const kRoomLines;

/// Of the answer to `list_queue`.
WatchedRoom read_room(const CommandOutput& output);

// What accounting keeps of everybody's batch jobs.

CommandLine list_past(std::chrono::seconds from, std::chrono::seconds until);
Result<PastJobs> read_past(const CommandOutput& output);

// What the partitions of a cluster offer, kind of node by kind of node, and what one user may have.

CommandLine survey_partitions();
Result<Survey> read_survey(const CommandOutput& output);

}  // namespace hpcbatch::slurm
