#include "pbs_commands/pbs_job.hpp"

#include "pbs_commands/commands.hpp"

#include <algorithm>
#include <utility>

#include <signal.h>

namespace hpcbatch::pbs_commands {
namespace {

using slurm_commands::has_ended;
using slurm_commands::Job;
using slurm_commands::JobState;

// Of mom's own verdicts (OpenPBS, job.h).
constexpr int kLostWithNode = -4, kOverMemory = -27, kOverWalltime = -29;

std::uint64_t tasks_of(const Job& job) {
  std::uint64_t count = 0;
  for (const IndexSteps& steps : job.all) count += (steps.last - steps.first) / steps.step + 1;
  return count;
}

bool is_held(const Job& job) {
  return job.reason == "JobHeldUser" || job.reason == "Dependency";
}

void count(PbsJob& array, const Job& job) {
  const std::uint64_t tasks = job.indices.size();
  if (has_ended(job.state)) {
    array.failed += job.state == JobState::Completed ? 0 : tasks;
  } else if (job.state == JobState::Pending) {
    (is_held(job) ? array.held : array.queued) += tasks;
  } else {
    (job.state == JobState::Running ? array.running : array.exiting) += tasks;
  }
}

void earlier(std::optional<double>& time, const std::optional<double>& other) {
  if (other && (!time || *other < *time)) time = other;
}

/// Of neighbours in the list, which are one array's.
PbsJob array_of(const Job* begin, const Job* end) {
  PbsJob array{*begin, true, false};
  IndexSet waiting;
  for (const Job* job = begin; job != end; ++job) {
    count(array, *job);
    earlier(array.job.started, job->started);
    if (job->ended) array.job.ended = std::max(array.job.ended.value_or(0), *job->ended);
    array.job.max_running = std::max(array.job.max_running, job->max_running);
    if (job->state != JobState::Pending) continue;
    for (const IndexRange& range : job->indices.ranges()) {
      const std::uint32_t less = job->from_zero ? 1 : 0;
      waiting.add(IndexRange{range.first - less, range.last - less});
    }
  }
  const std::uint64_t open = array.total(), all = tasks_of(*begin);
  // Those of long ago are not in the list.
  array.ended = all > open ? all - open : 0;
  array.array_is_over = open == 0;
  array.remaining = waiting.empty() ? "-" : to_string(waiting);
  return array;
}

std::optional<int> status_of_task(const Job& job) {
  switch (job.state) {
    case JobState::Completed:
      return 0;
    case JobState::Timeout:
      return kOverWalltime;
    case JobState::OutOfMemory:
      return kOverMemory;
    case JobState::NodeFail:
    case JobState::Preempted:
      return kLostWithNode;
    case JobState::Cancelled:
      if (!job.started) return std::nullopt;
      return kSignalled + (job.signal == SIGKILL ? SIGKILL : SIGTERM);
    case JobState::Failed:
      if (job.signal != 0) return kSignalled + job.signal;
      return job.exit_code == 0 ? 1 : job.exit_code;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string id_of(const PbsJob& job) {
  std::string id = std::to_string(array_number_of(job.job));
  if (job.is_array) id += "[]";
  if (job.is_subjob()) id += "[" + std::to_string(job.job.index()) + "]";
  return id + "." + kServer;
}

char state_of(const PbsJob& job) {
  if (job.is_array) {
    if (job.array_is_over) return 'F';
    if (job.running + job.exiting + job.ended > 0) return 'B';
    return job.queued == 0 ? 'H' : 'Q';
  }
  if (has_ended(job.job.state)) return job.is_subjob() && !job.array_is_over ? 'X' : 'F';
  if (job.job.state == JobState::Pending) return is_held(job.job) ? 'H' : 'Q';
  return job.job.state == JobState::Running ? 'R' : 'E';
}

std::optional<int> exit_status_of(const PbsJob& job) {
  if (!job.is_array) return status_of_task(job.job);
  if (!job.array_is_over) return std::nullopt;
  return job.failed == 0 ? 0 : 1;
}

std::string submitted_indices(const Job& job) {
  std::string text;
  for (const IndexSteps& steps : job.all) {
    const std::uint32_t less = job.from_zero ? 1 : 0;
    text += (text.empty() ? "" : ",") + std::to_string(steps.first - less);
    if (steps.last != steps.first) text += "-" + std::to_string(steps.last - less);
    if (steps.step != 1) text += ":" + std::to_string(steps.step);
  }
  return text;
}

std::vector<PbsJob> pbs_jobs_of(const std::vector<Job>& jobs, bool with_subjobs) {
  std::vector<PbsJob> all;
  for (std::size_t at = 0; at < jobs.size();) {
    std::size_t end = at + 1;
    while (end < jobs.size() && jobs[end].id == jobs[at].id) ++end;
    if (!jobs[at].is_array) {
      all.push_back({jobs[at]});
    } else {
      all.push_back(array_of(&jobs[at], jobs.data() + end));
      const bool is_over = all.back().array_is_over;
      const std::vector<Job> some(jobs.begin() + static_cast<std::ptrdiff_t>(at),
                                  jobs.begin() + static_cast<std::ptrdiff_t>(end));
      if (with_subjobs) {
        for (Job& one : slurm_commands::one_by_one(some))
          all.push_back({std::move(one), false, is_over});
      }
    }
    at = end;
  }
  return all;
}

std::optional<PbsName> parse_pbs_name(std::string_view text) {
  PbsName name{{}, std::string(text)};
  const std::string_view id = text.substr(0, text.find_first_of(".@"));
  const std::size_t bracket = std::min(id.find('['), id.size());
  const std::string_view indices = id.substr(bracket);
  const bool is_whole = indices.empty() || indices == "[]";
  auto job = slurm_commands::parse_job_name(is_whole ? std::string(id.substr(0, bracket))
                                                     : std::string(id.substr(0, bracket)) + "_" +
                                                           std::string(indices));
  if (!job) return std::nullopt;
  name.job = std::move(*job);
  if (text.find_first_of(".@") == std::string_view::npos) name.text.append(".").append(kServer);
  return name;
}

bool is_named(const PbsJob& job, const PbsName& name) {
  if (job.is_array) return !name.job.indices && name.job.number == array_number_of(job.job);
  return slurm_commands::is_named(job.job, name.job);
}

}  // namespace hpcbatch::pbs_commands
