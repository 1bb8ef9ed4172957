// A whole trace played, beside what really happened.
#pragma once

#include "foresight/cluster.hpp"
#include "foresight/replay/trace.hpp"

namespace hpcbatch::foresight {

struct Waits {
  double mean{0};                    ///< hours
  double by_node_hours{0};           ///< hours; each job counts as much as it used
  double median{0}, most_of_ten{0};  ///< hours; of nine in ten no longer
  double at_once{0};                 ///< part of the jobs that waited less than a minute
};

struct Fidelity {
  std::size_t jobs{0};
  std::size_t never_started{0};  ///< when played; of these nothing else is said
  Waits real, played;
  double mean_error{0};   ///< hours, of single jobs, without their signs
  double correlation{0};  ///< of the logarithms of waits plus a second
  double traced{0};       ///< hours of the trace
  double took{0};         ///< seconds
};

/// `warm_up`: what is submitted so soon after the first start is played, and not counted.
Fidelity play_trace(const Trace& trace, const ClusterModel& model, Seconds warm_up = 7 * kDay);

}  // namespace hpcbatch::foresight
