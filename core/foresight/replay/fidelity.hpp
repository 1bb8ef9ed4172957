// A whole trace played, beside what really happened.
#pragma once

#include "foresight/cluster.hpp"
#include "foresight/wait_history.hpp"

#include <istream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::foresight {

// Jobs that a real cluster has run, as its accounting wrote them down.

struct TracedJob {
  Job job;
  Seconds started{0};  ///< really
  Seconds ended() const { return started + job.runs; }
};

struct Trace {
  std::vector<TracedJob> jobs;  ///< by their submits
  std::size_t skipped{0};       ///< lines of jobs that say not enough, or that have not started
  bool has_priorities{false};
  /// Jobs share nodes: what a job's `nodes` are is cpus, and a node has so many.  0: they are nodes.
  std::int32_t cpus_of_a_node{0};
  std::vector<std::string> notes{};  ///< sentences on what it lacks
};

/// What `sacct` prints: titles above columns between `|` (`-P`), tabs or blanks, among them Submit,
/// Start, End (2022-11-01T15:34:14), Timelimit or TimelimitRaw (minutes), NNodes, and, where they
/// are there, AllocCPUS or NCPUS (without it each job is taken to have its nodes for itself), User
/// or UID, JobName, Priority, Partition (only those of `partition`, where one is named).  Titles may
/// be cut to their columns' widths.  Throws std::invalid_argument with one sentence.
Trace read_trace(std::istream& in, const std::string& partition = "");

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

/// As large sites set Slurm (bf_interval and bf_resolution 600, bf_window two days), with the weights
/// of age and size of Mirage's simulator (SC'23).  `backfill`: conservative, easy or none.
ClusterModel large_site(std::int32_t nodes, const std::string& backfill);

// What a trace does not say, and its cluster cannot be played without: how many nodes there were,
// and which jobs waited for another of their user, not for nodes.

/// From each moment on: the most that were in use at once within a few hours before and after.
std::vector<std::pair<Seconds, std::int32_t>> nodes_over_time(const Trace& trace);
/// The most that were ever in use at once.
std::int32_t most_nodes_in_use(const Trace& trace);

/// Where a job waited though enough nodes were idle, and started when another of its user ended,
/// it is taken to have come after that one (a dependency, or a bound for its user that nobody told):
/// sets `after` to the place in `trace.jobs`.  Says of how many.
std::size_t find_dependencies(Trace& trace,
                              const std::vector<std::pair<Seconds, std::int32_t>>& nodes);

/// The most jobs that so many users or more had running at once, and none more: a bound that the
/// cluster set for all; 0: none to be seen.
std::int32_t bound_of_users(const Trace& trace);

}  // namespace hpcbatch::foresight
