// Jobs that waited when a queue was looked at, and how long they then waited, from a file.
#pragma once

#include "foresight/wait_history.hpp"

#include <array>
#include <cstdint>
#include <istream>
#include <limits>
#include <string_view>
#include <vector>

namespace hpcbatch::foresight {

// What of a poll of Graham's or Cedar's queue (slurm-queue-time-pred, Mila and DRAC, 2023) is known
// when it is taken, and what only later.

/// Columns of numbers that may be inputs: what a job asks for, what waits before it (`q_`), what runs
/// (`r_`), all of it or in its partition (`p`), of its account (`a`) or both, and its account's share.
inline constexpr std::array<std::string_view, 59> kKnownColumns = {
    "req_cpus",          "req_mem_total",       "req_mem_per_cpu",     "time_limit_sec",
    "q_jobs_above",      "q_cores_above",       "q_mem_above",         "q_core_hours_above",
    "q_p_jobs_above",    "q_p_cores_above",     "q_p_mem_above",       "q_p_core_hours_above",
    "q_a_jobs_above",    "q_a_cores_above",     "q_a_mem_above",       "q_a_core_hours_above",
    "q_p_a_jobs_above",  "q_p_a_cores_above",   "q_p_a_mem_above",     "q_p_a_core_hours_above",
    "q_gpus_above",      "q_p_gpus_above",      "q_a_gpus_above",      "q_p_a_gpus_above",
    "q_gpu_hours_above", "q_p_gpu_hours_above", "q_a_gpu_hours_above", "q_p_a_gpu_hours_above",
    "r_jobs_above",      "r_cores_above",       "r_mem_above",         "r_core_hours_above",
    "r_p_jobs_above",    "r_p_cores_above",     "r_p_mem_above",       "r_p_core_hours_above",
    "r_a_jobs_above",    "r_a_cores_above",     "r_a_mem_above",       "r_a_core_hours_above",
    "r_p_a_jobs_above",  "r_p_a_cores_above",   "r_p_a_mem_above",     "r_p_a_core_hours_above",
    "r_gpus_above",      "r_p_gpus_above",      "r_a_gpus_above",      "r_p_a_gpus_above",
    "r_gpu_hours_above", "r_p_gpu_hours_above", "r_a_gpu_hours_above", "r_p_a_gpu_hours_above",
    "raw_share_poll",    "norm_share_poll",     "raw_use_poll",        "effect_use_poll",
    "level_fs_poll",     "norm_use_poll",       "norm_use_log_poll"};

/// Columns that are read apart: moments, names, and the text of what is asked for.
inline constexpr std::array<std::string_view, 6> kFactColumns = {
    "poll_time", "submit_time", "eligible_time", "partition_id_x", "account_id", "req_tres"};

/// Seconds from the poll to the start: what is to be told.
inline constexpr std::string_view kWaitColumn = "poll_wait_sec";

/// Columns that nobody reads.  The first seven are written when a job starts or ends.  The sums of
/// `run_hours` are of how long the jobs that wait have run in the end (a sum over one job is exactly
/// its `run_time_sec`).  A priority of accounting is the last that a job had, which grows while it
/// waits; a job's number may be given at its start (tasks of arrays).
inline constexpr std::array<std::string_view, 18> kUnreadColumns = {"run_time_sec",
                                                                    "end_time",
                                                                    "start_time",
                                                                    "eligible_wait_sec",
                                                                    "submit_wait_sec",
                                                                    "alloc_nodes",
                                                                    "state",
                                                                    "q_core_run_hours",
                                                                    "q_p_core_run_hours",
                                                                    "q_a_core_run_hours",
                                                                    "q_p_a_core_run_hours",
                                                                    "q_gpu_run_hours",
                                                                    "q_p_gpu_run_hours",
                                                                    "q_a_gpu_run_hours",
                                                                    "q_p_a_gpu_run_hours",
                                                                    "priority_x",
                                                                    "job_unique_id",
                                                                    "cluster_id"};

/// Where a column stands among `kKnownColumns`; does not compile for one that is not there.
consteval std::size_t known_column(std::string_view name) {
  for (std::size_t at = 0; at < kKnownColumns.size(); ++at)
    if (kKnownColumns[at] == name) return at;
  throw "no column of that name is known when a poll is taken";
}

inline constexpr float kNotSaid = std::numeric_limits<float>::quiet_NaN();

/// What is known of a job that waits when it is looked at.
struct PolledJob {
  Seconds polled{0}, submitted{0}, eligible{0};
  std::uint32_t partition{0}, account{0};
  float nodes{0}, gpus{0}, billing{0};              ///< asked for, or kNotSaid
  std::array<float, kKnownColumns.size()> known{};  ///< or kNotSaid
};

struct Polls {
  std::vector<PolledJob> jobs;  ///< in the order of their polls
  std::vector<Seconds> waited;  ///< of each, from its poll to its start
};

/// Comma-separated with titles; columns in any order, of which only those of `kKnownColumns`, of
/// `kFactColumns` and `kWaitColumn` are read.  Throws std::invalid_argument with one sentence, and
/// the line where there is one.
Polls read_polls(std::istream& in);

}  // namespace hpcbatch::foresight
