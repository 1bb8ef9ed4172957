// A task, or several of an array that wait, as Slurm's commands speak of jobs.
#pragma once

#include "model/batch_number.hpp"
#include "model/index_set.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::slurm_commands {

/// With its two letters and its whole word (squeue(1), JOB STATE CODES).
struct StateWords {
  std::string_view letters, word;
};

enum class JobState : std::uint8_t {
  Pending,
  Running,
  Completing,
  Completed,
  Failed,
  Cancelled,
  Timeout,
  OutOfMemory,
  NodeFail,
  Preempted,
  Deadline
};
StateWords words_of(JobState state);
bool has_ended(JobState state);
/// By its letters or its word, in any case; nothing for those that tasks never have.
std::optional<JobState> parse_job_state(std::string_view text);
/// `RUNNING` and `R`, and those that we never have (`SUSPENDED`): whether Slurm knows the word.
bool is_slurm_state(std::string_view text);

struct Job {
  std::uint64_t id{0};  ///< the engine's, of the array or the single task
  bool is_array{false};
  IndexSet indices;             ///< the engine's, of those that this stands for; of one task {0}
  std::vector<IndexSteps> all;  ///< of the whole array
  bool numbered{false};         ///< each task of the array has a number
  bool from_zero{false};        ///< the user's indices are one less
  bool is_rest{false};          ///< what waits of an array, be it one task
  JobState state{JobState::Pending};
  std::string reason{"None"};
  std::vector<std::string> tags;  ///< KEY=VALUE, some of which are the following
  std::string name, partition, account, qos, reservation, constraint, directory, node, comment;
  double cpus{1};
  std::uint64_t memory{0};          ///< bytes; 0: not said
  std::uint64_t memory_per_cpu{0};  ///< of these; 0: it was said for all cpus together
  std::uint64_t disk{0};
  std::optional<double> time_limit, time_request;
  std::string gpus;                                 ///< `gpu:a100:2`; empty: none
  std::optional<double> submitted, started, ended;  ///< seconds since 1970
  int exit_code{0}, signal{0};
  std::uint64_t peak_memory{0};
  double cpu_s{0};
  std::int64_t priority{0};
  std::uint32_t max_running{0};
  std::uint32_t restarts{0};
  struct Wait {
    std::string id;                        ///< of the engine
    std::string how;                       ///< the key of a task that says so: `after`, `after_any`
    std::optional<std::uint32_t> first{};  ///< of an array: the first index that its user knows
    double delay{0};                       ///< seconds
    bool operator==(const Wait&) const = default;
  };
  std::vector<Wait> after;   ///< what has not come yet
  bool one_of_after{false};  ///< is enough
  bool is_singleton{false};
  bool is_requeued{true};                 ///< where its node dies
  std::optional<double> begin, deadline;  ///< not before, not after
  // Where they were asked for.
  std::string input, output, error;  ///< files; empty: none
  std::vector<std::string> command;  ///< the script and its arguments; empty: it came with none
  std::uint32_t tasks{1};            ///< for steps of srun

  /// Several of an array that wait.
  bool is_many() const { return is_array && (is_rest || indices.size() != 1); }
  /// The user's index of one task.
  std::uint32_t index() const { return indices.ranges().front().first - (from_zero ? 1 : 0); }
};

/// As its user counts them.
IndexSet user_indices(const Job& job);

/// Number of a task, or of the whole array: of those that wait together its first.
std::uint64_t number_of(const Job& job);
/// Of the array; of a single task its own.
std::uint64_t array_number_of(const Job& job);
/// `2000000012`, `2000000012_3`, `2000000012_[1-9%2]`.
std::string job_id(const Job& job);
/// `3`, `1-9%2`; empty: it is no array.
std::string array_task_id(const Job& job);
/// Whether it waits for others.
bool waits_for_jobs(const Job& job);
/// Since when it may start, as far as it is known: one that is held or waits for others may not.
std::optional<double> eligible_since(const Job& job);
/// When it has started, or starts at the earliest; of one that never did, its end.
std::optional<double> start_of(const Job& job);
/// When it has ended, or ends at the latest if it starts then.
std::optional<double> end_of(const Job& job);

/// Whole ones, of each task.
long cpus_of(const Job& job);
/// Of all kinds together.
std::uint64_t gpus_of(const Job& job);

/// `/home/ada/job.sh a b`; `(null)`: the script came with none.
std::string command_text(const Job& job);
/// As Slurm counts without priorities of its own: the higher, the earlier; 0: held.
std::int64_t priority_of(const Job& job);

/// Of lines of `GET /v1/tasks?full=1`, the oldest first.  Those of an array that wait for the same
/// are one where `together`.
std::vector<Job> jobs_of(const boost::json::array& lines, bool together);
/// The same as one task each.
std::vector<Job> one_by_one(const std::vector<Job>& jobs);

/// What a command names: `12`, `12_3`, `12_[1-5,9]`, `12.batch`.
struct JobName {
  std::uint64_t number{0};
  std::optional<IndexSet> indices;  ///< the user's
  std::string step;                 ///< behind a dot
};
std::optional<JobName> parse_job_name(std::string_view text);
/// `12`, `12_1-3`.
std::string to_string(const JobName& name);
/// Of a list; commas within brackets belong to an array.
std::vector<std::string> split_job_names(std::string_view text);
bool is_named(const Job& job, const JobName& name);
/// Of those elements of an array that wait together only the named ones.
void cut_to(std::vector<Job>& jobs, const std::vector<JobName>& names);
/// The ids of the engine of what is named there, as `cancel` takes them: `12`, `12.3`.
std::vector<std::string> engine_ids(const Job& job);

}  // namespace hpcbatch::slurm_commands
