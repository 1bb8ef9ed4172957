// Jobs that a real cluster has run, as its accounting wrote them down.
#pragma once

#include "foresight/wait_history.hpp"

#include <istream>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::foresight {

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

}  // namespace hpcbatch::foresight
