// Batch jobs of all users: which run, which wait for nodes, in which order and how large.
#pragma once

#include "hpcbatch/queue_watcher.hpp"
#include "hpcbatch/result.hpp"
#include "records.hpp"
#include "watched_places.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace hpcbatch::pbs {

/// No more that wait can matter for what starts within days.
inline constexpr std::size_t kMostThatWait = 5000;

struct ListedJobs {
  std::vector<WatchedJob> jobs;
  std::size_t waiting{0};  ///< in state Q; an array counts as one
};

/// Of batch jobs of our own user, by number.
using Names = std::unordered_map<std::string, std::string>;

/// An error says what cannot be told.  `now`: in the zone of the records.
Result<ListedJobs> listed_jobs(const std::vector<Record>& records, const Names& own,
                               const QueuesToWatch& queues, const std::vector<ComputeNode>& nodes,
                               std::optional<std::chrono::sys_seconds> now);

}  // namespace hpcbatch::pbs
