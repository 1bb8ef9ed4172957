// What a scheduler plugin may add to its interface: what accounting keeps of everybody's batch jobs,
// for an estimator to learn from how long they waited.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/result.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// One batch job of anybody.  Moments are since 1970, UTC.
struct PastJob {
  std::string partition;  ///< the first, where it might have started in several
  std::string user;       ///< empty: not told
  double cpus{1};         ///< in all
  double gpus{0};         ///< in all
  std::chrono::seconds limit{0};
  std::chrono::seconds submitted{0};
  std::chrono::seconds eligible{0};             ///< from then on nothing but room was missing
  std::optional<std::chrono::seconds> started;  ///< nothing: not yet, or never
  std::optional<std::chrono::seconds> ended;    ///< or cancelled while it waited; nothing: not yet
};

struct PastJobs {
  std::vector<PastJob> jobs;
  bool is_cut{false};  ///< there are more than are told
};

/// A class that is a `Scheduler` may be this too; the engine finds out with a dynamic_cast.  Not part
/// of `Scheduler`, so that plugins that know nothing of it stay as they are.  The same promises: no
/// I/O, no clock, callable from any thread.
class QueueHistory {
 public:
  QueueHistory() = default;
  QueueHistory(const QueueHistory&) = delete;
  QueueHistory& operator=(const QueueHistory&) = delete;
  virtual ~QueueHistory() = default;

  /// Lists those that were eligible, or ran, at some moment from `from` on and before `until` (since
  /// 1970, at most a day later).  Must print a bounded amount.
  virtual CommandLine list_past(std::chrono::seconds from, std::chrono::seconds until) const = 0;
  /// Rejected where there is no accounting: nothing will change that.
  virtual Result<PastJobs> read_past(const CommandOutput& output) const = 0;
};

}  // namespace hpcbatch
