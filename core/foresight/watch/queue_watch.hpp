// What looks at a batch system's queue, one after another, let expect: when would an allocation
// start, and when do those start that wait?
//
// A partition is played with cpus for nodes, which is exact where batch jobs have whole nodes.  How
// long others run is learned from those that a look shows and the next does not.
#pragma once

#include "foresight/job.hpp"
#include "foresight/look_ahead.hpp"
#include "foresight/run_times.hpp"

#include "hpcbatch/queue_watcher.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch::foresight {

/// An allocation that is asked for now.
struct Wanted {
  std::string partition;  ///< empty: the default
  double cpus{1};         ///< in all
  Seconds limit{0};
  bool has_gpus{false};
};

/// Waits from the look on, in order, each as probable as the others.
struct Foreseen {
  std::vector<Seconds> next;                           ///< of `Wanted`
  std::map<std::string, std::vector<Seconds>> queued;  ///< of ours that wait, by name
  bool by_limits{false};  ///< too little is known of how long others run: no later than that
  std::string blind;      ///< why nothing can be said, for people; empty: something can
};

class QueueWatch {
 public:
  /// `now`: seconds since any moment that all looks share.
  void see(const WatchedQueue& queue, Seconds now);
  /// From the last look.  `ours`: names of our allocations.  Takes milliseconds to a second: never
  /// on a thread that has other duties.
  Foreseen foresee(const Wanted& wanted, const std::set<std::string>& ours) const;

 private:
  Job job_of(const WatchedJob& seen) const;
  struct Part;
  Part part_of(const WatchedPartition& partition) const;

  WatchedQueue queue_;
  Seconds now_{0};
  /// Those that ran at the last look, by number, with their beginnings.
  std::map<std::string, std::pair<Job, Seconds>> ran_;
  std::map<std::string, std::int32_t> users_;
  std::map<std::string, std::uint32_t> names_;
  RunTimes times_;
  std::size_t learned_{0};
};

}  // namespace hpcbatch::foresight
