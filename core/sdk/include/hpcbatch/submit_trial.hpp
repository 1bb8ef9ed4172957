// What a scheduler plugin may add to its interface: the batch system's own test of a submit, which
// says whether account, partition, limits and options would be taken, and submits nothing.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/result.hpp"
#include "hpcbatch/scheduler.hpp"

#include <string>

namespace hpcbatch {

/// A class that is a `Scheduler` may be this too, as with `Surveyor`: the engine finds out with a
/// dynamic_cast.  The same promises: no I/O, no clock, callable from any thread.
class SubmitTrial {
 public:
  SubmitTrial() = default;
  SubmitTrial(const SubmitTrial&) = delete;
  SubmitTrial& operator=(const SubmitTrial&) = delete;
  virtual ~SubmitTrial() = default;

  /// As `Scheduler::submit`, of the same script, with nothing submitted.
  virtual CommandLine try_submit(const AllocationRequest& request,
                                 const std::string& script_path) const = 0;
  /// The batch system's word on when it would start.  An error: it would not be taken, and why
  /// (Rejected), or nobody knows (Transient).
  virtual Result<std::string> read_try_submit(const CommandOutput& output) const = 0;
};

}  // namespace hpcbatch
