// What looks at a batch system's queue, one after another, let expect: when would an allocation
// start, and when do those start that wait?
//
// A partition is played with cpus for nodes, which is exact where batch jobs have whole nodes, then
// with memory and with GPUs where the look tells of them, and at last node by node (node_room.hpp); the
// latest start counts.  How long others run is learned from those that a look shows and the next does
// not.
#pragma once

#include "foresight/look_ahead.hpp"
#include "foresight/wait_history.hpp"
#include "foresight/watch/node_room.hpp"

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
  std::uint32_t nodes{1};
  double memory{0};  ///< bytes, in all; 0: none is asked for
  GpuCounts gpus{};  ///< in all, by kind; kind "" is any
};

/// Waits from the look on, in order, each as probable as the others.
struct Foreseen {
  std::vector<Seconds> next;                           ///< of `Wanted`
  std::map<std::string, std::vector<Seconds>> queued;  ///< of ours that wait, by name
  bool by_limits{false};  ///< too little is known of how long others run: no later than that
  std::string blind;      ///< why nothing can be said, for people; empty: something can
  /// Nothing starts there at present, so that waits of the past say nothing either.
  bool is_closed{false};
};

class QueueWatch {
 public:
  /// `now`: seconds since any moment that all looks share.
  /// `room`: how full its nodes are, where that was told.
  void see(const WatchedQueue& queue, Seconds now, const WatchedRoom& room = {});
  /// One of those that ended.
  struct Ended {
    std::string user, name;  ///< without digits
    Seconds limit{0}, ran{0};
    std::int32_t cpus{1};
  };
  /// Between the last look and the one before it.
  const std::vector<Ended>& newly_ended() const { return newly_ended_; }
  /// One of an earlier time, so that what was learned outlives this object.
  void learn(const Ended& ended);
  /// From the last look.  `ours`: names of our allocations.  Takes milliseconds to a second: never
  /// on a thread that has other duties.
  Foreseen foresee(const Wanted& wanted, const std::set<std::string>& ours) const;

 private:
  Job job_of(const WatchedJob& seen) const;
  const RoomOfJob& room_of(const WatchedJob& seen) const;
  struct Part;
  struct Thing;
  std::vector<Thing> things_of(const Wanted& wanted) const;
  void put_nodes(Part& part, const WatchedPartition& partition, const NodeRoom& room,
                 const Thing& thing) const;
  Part part_of(const WatchedPartition& partition, const NodeRoom& room, const Thing& thing) const;
  void play(Foreseen& foreseen, Part part, const Thing& thing, const Wanted& wanted,
            const std::set<std::string>& ours) const;
  void fit_nodes(Foreseen& foreseen, const NodeRoom& room, const Wanted& wanted) const;
  std::string why_closed(const WatchedPartition& partition, const NodeRoom& room,
                         const std::vector<Thing>& things) const;

  WatchedQueue queue_;
  WatchedRoom room_;
  Seconds now_{0};
  /// Those that ran at the last look, by number, with their beginnings.
  struct Ran {
    Ended job;
    Seconds since{0};
  };
  std::map<std::string, Ran> ran_;
  std::map<std::string, std::int32_t> users_;
  std::map<std::string, std::uint32_t> names_;
  RunTimes times_;
  std::size_t learned_{0};
  std::vector<Ended> newly_ended_;
};

}  // namespace hpcbatch::foresight
