// A task, or an array, as PBS's commands speak of jobs.  Pure.
#pragma once

#include "slurm_commands/job.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pbs_commands {

// What commands exit with: pbs_errno in eight bits.
inline constexpr int kUnknownJob = 153, kHasFinished = 35, kExceedsLimits = 188, kBadState = 170,
                     kUnknownSignal = 167, kNotRerunnable = 192;
/// Exit_status of those that a signal ended is this and its number; of a deleted one that of TERM.
inline constexpr int kSignalled = 256;

struct PbsJob {
  slurm_commands::Job job;  ///< of an array one of its tasks
  bool is_array{false};     ///< the array as a whole
  bool array_is_over{true};
  /// Of an array as a whole.
  std::uint64_t queued{0}, held{0}, running{0}, exiting{0}, ended{0}, failed{0};
  /// Of those that wait, in the user's indices: `3-9`.
  std::string remaining;

  std::uint64_t total() const { return queued + held + running + exiting + ended; }
  bool is_subjob() const { return !is_array && job.is_array; }
};

/// `2000000012.hpcbatch`, `2000000012[].hpcbatch`, `2000000012[3].hpcbatch`.
std::string id_of(const PbsJob& job);
/// Q, R, H, E, F, of an array B, of a subjob whose array goes on X.
char state_of(const PbsJob& job);
/// Nothing: it has not ended, or never began.
std::optional<int> exit_status_of(const PbsJob& job);
/// As of qsub -J: `0-9`, `1-9:2`.
std::string submitted_indices(const slurm_commands::Job& job);

/// All that there is, arrays whole, in the order in which they were submitted.  `with_subjobs`: behind
/// each array its tasks.
std::vector<PbsJob> pbs_jobs_of(const std::vector<slurm_commands::Job>& jobs, bool with_subjobs);

/// What a command names: `12.hpcbatch`, `12`, `12[]`, `12[3].hpcbatch`, `12[1-5]`, each also with
/// `@SERVER` behind it.
struct PbsName {
  slurm_commands::JobName job;
  std::string text;
};
/// Nothing where it does not begin with a number.
std::optional<PbsName> parse_pbs_name(std::string_view text);
bool is_named(const PbsJob& job, const PbsName& name);

}  // namespace hpcbatch::pbs_commands
