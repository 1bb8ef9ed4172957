// What the engine knows of tasks: how they were submitted, how an attempt ended.  What a task runs
// (command, environment, paths) is its recipe: it stays in the store and the engine never sees it.
#pragma once

#include "failure/failure.hpp"
#include "model/ids.hpp"
#include "model/index_set.hpp"
#include "model/needs.hpp"
#include "model/rare.hpp"
#include "model/resources.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

// What each end of a task means for retries.

/// Whether the task cannot be blamed: it is then retried without asking and without using up a
/// retry of the user's.
bool is_not_the_tasks_fault(Failure failure);

/// Whether it counts where an array is given up after so many: not what its user has ended, and not
/// what never started because of another's failure.
bool is_a_failure_of_its_own(Failure failure);

/// Waits for other tasks.  Without an index for the whole array.
struct Dependency {
  /// The store keeps the numbers.
  enum class Kind : std::uint8_t {
    Success,
    AnyEnd,
    EachSuccess,
    Start,      ///< each has started, or ended without
    NotSuccess  ///< all have ended, one of them not well
  };
  ArrayId array;
  std::optional<std::uint32_t> index;
  Kind kind{Kind::Success};
  /// Until the engine has taken the submission, in place of `array`: the array of this number of
  /// the same submission, from 1.
  std::uint32_t sibling{0};
  Duration delay{};  ///< of Start: so long after the last of these starts
  /// Until the engine has it: `index` is as its user counts, from 0 where the array begins there.
  bool is_users_index{false};
  friend bool operator==(const Dependency&, const Dependency&) = default;
};

/// When an array may start, and what runs it again: few say any of it.
struct Course {
  std::optional<Time> begin;     ///< not before
  std::optional<Time> deadline;  ///< what cannot end before it ends as Deadline
  bool any_of_after{false};      ///< one of what it waits for is enough
  /// Its tasks run one at a time, and after all that was submitted before under that name; empty: no
  /// matter.
  std::string singleton;
  /// What has started, or may have, is not run again but for a retry of its user's.
  bool no_requeue{false};
  std::uint8_t requeue_exit{0};  ///< a task that exits so goes on in another attempt; 0: none does
  /// What a retry has of memory after it ran out of that, and of time after its limit, in hundredths
  /// of what was had before; 0: the same.
  std::uint32_t retry_memory{0}, retry_time{0};
  friend auto operator<=>(const Course&, const Course&) = default;
};

/// One submission as the engine takes it: an array, or one task ({0} as its indices).
struct NewArray {
  IndexSet indices;
  Needs needs;
  std::int32_t priority{0};
  std::uint32_t retries{0};      ///< the user's own
  std::uint32_t max_running{0};  ///< 0: no bound
  /// While so many of its tasks stand as failed, what has not started is cancelled; 0: never.
  std::uint32_t give_up_at{0};
  bool gives_up_running{false};  ///< and what runs is ended
  bool held{false};
  bool streams_input{false};  ///< its input cannot be had twice: never retried
  /// Each of its tasks has a number as a batch job has (batch_number.hpp); alone in its submission.
  bool numbered{false};
  std::vector<Dependency> after;
  Rare<Course> course{};
  std::optional<TaskId> within{};  ///< the task whose command submitted it
};

/// Work of one submission that is cancelled once its reader has been away for that long.
struct ReadBy {
  std::string reader;
  Duration lease{};
};

/// Where a task's captured output lies (see wire.proto LogPlace).
struct LogPlace {
  std::string file;
  std::uint64_t last_out{0};
  std::uint64_t last_err{0};
  std::uint64_t out_bytes{0};
  std::uint64_t err_bytes{0};
  bool truncated{false};
  bool lost{false};  ///< and that because it could not be written
};

/// How one attempt ended, or how a task ended that never started.
struct Outcome {
  Failure failure{Failure::Ok};
  std::int32_t exit_code{0};  ///< below 0: not known
  std::int32_t signal{0};
  std::string message;
  std::optional<Time> started;  ///< by the node's clock
  Time ended{};
  std::uint64_t peak_memory{0};  ///< bytes
  Duration cpu_time{};
  std::uint64_t read_bytes{0};  ///< from storage: what the node had in memory is not in it
  std::uint64_t written_bytes{0};
  Duration staged_in{};   ///< while its files were on their way to where it ran; 0: there were none
  Duration staged_out{};  ///< from its end until its outputs were where they belong
  std::optional<GpuUse> gpu;
  std::string cpus;    ///< those it was bound to, as 0-3,8, where it said how, or had a GPU
  std::string device;  ///< of what has a kind (needs.hpp): what it ran on (device_of); else empty
  LogPlace log;
  std::string metrics;  ///< JSON that the task wrote of itself, not looked at; empty: none
};

/// As a shell counts it, 128 + n for a signal; none where the command never ran.
std::optional<std::int32_t> shell_exit_code(const Outcome& outcome);

/// What is said of a task that can never start, and back from there to the first cause of a
/// failure: dependants are told of that one, however long the chain.
std::string message_of_never_started(std::string_view cause);
std::string first_cause(TaskId task, Failure failure, std::string_view message);

enum class TaskState : std::uint8_t {
  Waiting,
  Held,
  Running,
  Unknown,
  Done,
  Failed,
  Cancelled,
  Finishing  ///< has ended at its pilot, and its result waits for the workspace
};
std::string_view to_string(TaskState state);
std::optional<TaskState> parse_task_state(std::string_view word);
/// The state a task is in once it has ended that way.
TaskState state_after(Failure failure);

/// Tasks a request names: whole arrays, or some indices of them.
struct Selection {
  ArrayId array;
  std::optional<IndexSet> indices;
};

// A process that pilots keep warm for tasks that share it.

struct TaskService {
  enum class Kind : std::uint8_t {
    Fork,   ///< it forks each task's process
    Answer  ///< its workers answer tasks' requests, one batch after the other
  };
  Kind kind{Kind::Fork};
  std::string name;
  std::vector<std::string> argv;                 ///< starts it
  std::map<std::string, std::string> variables;  ///< over the environment of its tasks
  std::uint64_t memory{std::uint64_t{2} << 30};  ///< bytes that it, or a worker, may hold
  std::chrono::milliseconds idle{std::chrono::minutes{5}};  ///< ends after that long unwanted
  std::uint32_t requests{10'000};                           ///< is started anew after so many
  std::chrono::milliseconds start{0};  ///< without a sign of life while it starts
  std::uint32_t batch{1};              ///< requests that a worker is handed together at most
  std::uint32_t instances{0};  ///< workers on the same devices at most; 0: one for each request
  bool on_devices{false};      ///< its tasks have GPUs: a worker runs on those of its requests
  friend bool operator==(const TaskService&, const TaskService&) = default;
};

/// Bounds of what may be asked for.
inline constexpr std::uint32_t kMostServiceRequests = 1'000'000'000;
inline constexpr std::uint32_t kLargestServiceBatch = 1'000;
inline constexpr std::uint32_t kMostServiceInstances = 1'000;

}  // namespace hpcbatch
