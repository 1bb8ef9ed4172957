// What a plugin that is a `QueueWatcher` may add to it: how full each node is, and of what, so that
// expected starts heed memory, GPUs and reservations too.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/result.hpp"

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace hpcbatch {

/// By kind; kind "" where none is told.
using GpuCounts = std::map<std::string, double>;

struct RoomOfNode {
  std::string name;
  bool is_closed{false};  ///< it is away, or takes no batch job for now
  double cpus{0}, busy_cpus{0};
  double memory{0}, busy_memory{0};  ///< bytes; 0 where the batch system gives memory to nobody
  GpuCounts gpus, busy_gpus;
};

/// What a batch job has, or asks for, in all.
struct RoomOfJob {
  double memory{0};  ///< bytes
  GpuCounts gpus;
};

/// Nodes that are kept for some; nobody else's batch job may run there then.
struct ReservedRoom {
  std::string name;
  std::chrono::seconds starts_in{0}, ends_in{0};  ///< from now; below 0: has begun
  std::vector<std::string> nodes;
};

struct WatchedRoom {
  std::vector<RoomOfNode> nodes;
  std::map<std::string, RoomOfJob> jobs;                 ///< by `WatchedJob::number`
  std::map<std::string, std::string> closed_partitions;  ///< that start nothing now, and why
  std::vector<ReservedRoom> reservations;
};

/// The engine finds out with a dynamic_cast, and reads the same answer as `QueueWatcher::read_queue`
/// does.  The same promises.
class RoomWatcher {
 public:
  RoomWatcher() = default;
  RoomWatcher(const RoomWatcher&) = delete;
  RoomWatcher& operator=(const RoomWatcher&) = delete;
  virtual ~RoomWatcher() = default;

  /// What is not told there is left out: no nodes where nothing is known of them.
  virtual WatchedRoom read_room(const CommandOutput& output) const = 0;
};

}  // namespace hpcbatch
