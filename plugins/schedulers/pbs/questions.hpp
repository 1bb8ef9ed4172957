// What is handed to qsub, the batch script of it with one pilot on each node, and what it answers.
#pragma once

#include "dialect.hpp"
#include "hpcbatch/queue_history.hpp"
#include "hpcbatch/queue_watcher.hpp"
#include "hpcbatch/room_watcher.hpp"
#include "hpcbatch/scheduler.hpp"

#include <string>
#include <variant>

namespace hpcbatch::pbs {

CommandLine qsub(const Settings& settings, const AllocationRequest& request,
                 const std::string& script_path);

std::string batch_script(const AllocationRequest& request);

/// A number alone is success. A refusal counts as one only where nothing can have been accepted.
std::variant<std::string, SubmitRefused> read_qsub(const CommandOutput& output);

// What a server keeps of everybody's batch jobs that have ended (job_history_enable of OpenPBS), and
// of those that have not.

CommandLine list_past(const std::string& dialect, std::chrono::seconds from,
                      std::chrono::seconds until);
Result<PastJobs> read_past(const CommandOutput& output);

// What all users have in the queue, and on which nodes.

CommandLine list_queue(const std::string& dialect);
Result<WatchedQueue> read_queue(const CommandOutput& output);
/// How full its nodes are, by the same answer.
WatchedRoom read_room(const CommandOutput& output);

}  // namespace hpcbatch::pbs
