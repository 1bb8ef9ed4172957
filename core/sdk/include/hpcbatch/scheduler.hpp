// The interface of a scheduler plugin: the language of one batch system, pure text in and text out.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/plugin.hpp"
#include "hpcbatch/result.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch {

/// One allocation to ask for.  `name` is at most 15 letters and digits, a letter first (old
/// Torque's limit), and is how the allocation is found again; the batch system's number never is.
struct AllocationRequest {
  std::string name;
  std::string partition;                      ///< empty: the batch system's default
  std::uint32_t nodes{1};                     ///< one pilot is started on each
  double cpus{1};                             ///< per node
  std::uint64_t memory{0};                    ///< bytes per node; 0: do not ask
  std::map<std::string, std::uint32_t> gpus;  ///< per node, by kind; kind "" is any
  std::chrono::seconds walltime{0};
  std::vector<std::string> options;  ///< the user's own, passed on as they are
  std::vector<std::string> setup;    ///< shell lines to run before the pilot
  std::vector<std::string> pilot;    ///< argv of the pilot; the same on each node
  std::string directory;  ///< existing directory for the script and the batch system's own logs
};

/// Why a submission was refused (reliability tables of the batch systems' manuals).
enum class Refusal : std::uint8_t {
  Unclear,    ///< nobody can say whether it was accepted: look the name up, do not ask again
  Transient,  ///< not accepted; may be later (rate limits, no contact where nothing can have been
              ///< accepted)
  Limit,      ///< a limit on the number of batch jobs was reached: ask for no more for a while
  Permanent,  ///< a person must change something (partition, account, memory, options)
};

struct SubmitRefused {
  Refusal refusal{Refusal::Unclear};
  std::string text;  ///< the batch system's own words, one line
};

/// What a batch job's state means to us; the reasons are folded in.
enum class BatchState : std::uint8_t {
  Queued,        ///< waits for resources or its turn
  LimitReached,  ///< waits because a limit on the user or account was reached
  Held,          ///< held by a person
  NeverStarts,   ///< the batch system says that it cannot start as it was asked for
  Outage,        ///< nodes or partition are away
  Running,
  Suspended,
  Ended,  ///< see `EndCause`
};

enum class EndCause : std::uint8_t {
  None,
  Completed,
  Timeout,  ///< its walltime was used up
  Preempted,
  NodeFailed,
  OutOfMemory,
  Cancelled,     ///< by a person or by us: the engine knows whether it asked
  LaunchFailed,  ///< never ran a line of the script
  Failed,
};

/// One batch job as a poll shows it.
struct BatchJob {
  std::string name;    ///< the allocation's
  std::string number;  ///< the batch system's own name for it, for people
  BatchState state{BatchState::Queued};
  EndCause cause{EndCause::None};
  std::string reason;  ///< the batch system's own word
  std::optional<std::chrono::seconds>
      time_left;  ///< of the walltime, where the batch system says so
  std::vector<std::string> nodes;
};

/// What a site offers, as far as the batch system tells: for `sites check`.
struct Offer {
  std::string partition;
  std::uint32_t nodes{0};
  double cpus{0};           ///< of the largest node
  std::uint64_t memory{0};  ///< bytes, of the largest node
  std::map<std::string, std::uint32_t> gpus;
  std::optional<std::chrono::seconds> walltime;  ///< longest allowed
};

/// The language of one batch system.  No I/O, no clock: says what to run and reads what came back;
/// callable from any thread, also from several at once.
class Scheduler {
 public:
  static constexpr hpcbatch_plugin_kind kKind = HPCBATCH_KIND_SCHEDULER;
  Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  virtual ~Scheduler() = default;

  /// Text of the batch script, to be put at `script_path` before `submit` runs.
  virtual std::string script(const AllocationRequest& request) const = 0;
  virtual CommandLine submit(const AllocationRequest& request,
                             const std::string& script_path) const = 0;
  /// The batch system's number, or why there is none.  What cannot be read is `Unclear`.
  virtual std::variant<std::string, SubmitRefused> read_submit(
      const CommandOutput& output) const = 0;
  /// Lists the batch jobs of this user whose names begin with `prefix`, ended ones too as long as
  /// the batch system remembers them.  `names` are those that the caller cares about: a hint, never
  /// a filter by number.
  virtual CommandLine poll(const std::string& prefix,
                           const std::vector<std::string>& names) const = 0;
  /// An error where the answer cannot be trusted as a whole; then nothing is concluded from it.
  virtual Result<std::vector<BatchJob>> read_poll(const std::string& prefix,
                                                  const CommandOutput& output) const = 0;
  /// Cancels by name; `numbers` of those names where known, in the same order, else empty texts.
  virtual CommandLine cancel(const std::vector<std::string>& names,
                             const std::vector<std::string>& numbers) const = 0;
  virtual CommandLine probe() const = 0;
  virtual Result<std::vector<Offer>> read_probe(const CommandOutput& output) const = 0;
};

}  // namespace hpcbatch

#define HPCBATCH_SCHEDULER(Concrete, name, version) \
  HPCBATCH_PLUGIN_(hpcbatch::Scheduler, Concrete, HPCBATCH_KIND_SCHEDULER, name, version)
