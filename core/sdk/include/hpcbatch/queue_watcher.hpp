// What a scheduler plugin may add to its interface: what others have in the queue, for estimates of
// when an allocation starts.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hpcbatch {

/// One batch job of anybody, as far as others wait for it.
struct WatchedJob {
  std::string number;                   ///< the batch system's own, while it lives
  std::string name;                     ///< as it was submitted; ours are among them
  std::string user;                     ///< empty: not told
  std::vector<std::string> partitions;  ///< in which it runs, or may start
  bool runs{false};
  /// Of one that waits: it may start as soon as there is room.  Not so where it is held, waits for
  /// another or for a date, or has reached a limit.
  bool may_start{true};
  bool at_limit{false};  ///< it may not, for a limit alone
  double cpus{1};        ///< in all
  std::chrono::seconds limit{0};
  std::chrono::seconds elapsed{0};  ///< since it began
  std::chrono::seconds age{-1};     ///< since it was submitted; below 0: not told
  std::vector<std::string> nodes;   ///< that it has
};

struct WatchedPartition {
  std::string name;
  bool is_default{false};
  double cpus{0};       ///< of nodes that are up
  double busy_cpus{0};  ///< of these, by anybody's batch jobs
  std::vector<std::string> nodes;
};

struct WatchedQueue {
  /// What waits stands in the order in which the batch system means to start it.
  std::vector<WatchedJob> jobs;
  std::vector<WatchedPartition> partitions;
};

/// A class that is a `Scheduler` may be this too; the engine finds out with a dynamic_cast, and
/// asks at most once a minute.  Not part of `Scheduler`, so that plugins that know nothing of it
/// stay as they are.  The same promises: no I/O, no clock, callable from any thread.
class QueueWatcher {
 public:
  QueueWatcher() = default;
  QueueWatcher(const QueueWatcher&) = delete;
  QueueWatcher& operator=(const QueueWatcher&) = delete;
  virtual ~QueueWatcher() = default;

  /// Must cost the batch system no more than one listing of its queue, and print a bounded amount.
  virtual CommandLine watch_queue() const = 0;
  /// What is hidden from us is simply missing in it.
  virtual Result<WatchedQueue> read_queue(const CommandOutput& output) const = 0;
};

}  // namespace hpcbatch
