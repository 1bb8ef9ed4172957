#include "slurm_commands/job.hpp"

#include "cli/parse/script.hpp"
#include "cli/show/values.hpp"
#include "failure/failure.hpp"
#include "slurm_commands/options.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>

namespace hpcbatch::slurm_commands {
namespace {

namespace json = boost::json;

constexpr std::array<StateWords, 11> kStates{{{"PD", "PENDING"},
                                              {"R", "RUNNING"},
                                              {"CG", "COMPLETING"},
                                              {"CD", "COMPLETED"},
                                              {"F", "FAILED"},
                                              {"CA", "CANCELLED"},
                                              {"TO", "TIMEOUT"},
                                              {"OOM", "OUT_OF_MEMORY"},
                                              {"NF", "NODE_FAIL"},
                                              {"PR", "PREEMPTED"},
                                              {"DL", "DEADLINE"}}};
/// Those of Slurm that a task never has.
constexpr std::array<StateWords, 13> kOthers{{{"BF", "BOOT_FAIL"},
                                              {"CF", "CONFIGURING"},
                                              {"RD", "RESV_DEL_HOLD"},
                                              {"RF", "REQUEUE_FED"},
                                              {"RH", "REQUEUE_HOLD"},
                                              {"RQ", "REQUEUED"},
                                              {"RS", "RESIZING"},
                                              {"RV", "REVOKED"},
                                              {"SE", "SPECIAL_EXIT"},
                                              {"SI", "SIGNALING"},
                                              {"SO", "STAGE_OUT"},
                                              {"ST", "STOPPED"},
                                              {"S", "SUSPENDED"}}};

bool is_same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char one, char two) { return lower_case(one) == lower_case(two); });
}

bool is_state(const StateWords& words, std::string_view text) {
  return is_same_word(words.letters, text) || is_same_word(words.word, text);
}

JobState state_of_failure(const std::string& word) {
  switch (parse_failure(word).value_or(Failure::ToolFailed)) {
    case Failure::OomTask:
    case Failure::OomGpu:
      return JobState::OutOfMemory;
    case Failure::TimeTask:
      return JobState::Timeout;
    case Failure::NodeLost:
    case Failure::PilotWalltime:
    case Failure::PilotKilled:
    case Failure::WorkspaceLost:
      return JobState::NodeFail;
    case Failure::PilotPreempted:
      return JobState::Preempted;
    case Failure::DeadlineMissed:
      return JobState::Deadline;
    case Failure::DependencyFailed:
    case Failure::Cancelled:
      return JobState::Cancelled;
    default:
      return JobState::Failed;
  }
}

JobState state_in(const json::object& line) {
  const std::string state = text_at(line, "state");
  if (state == "waiting" || state == "held") return JobState::Pending;
  if (state == "running" || state == "unknown") return JobState::Running;
  if (state == "finishing") return JobState::Completing;
  if (state == "done") return JobState::Completed;
  if (state == "cancelled") return JobState::Cancelled;
  return state_of_failure(text_at(line, "failure"));
}

std::string reason_in(const json::object& line) {
  const std::string state = text_at(line, "state"), waits_for = text_at(line, "waits_for");
  if (state == "held") return "JobHeldUser";
  if (waits_for == "tasks") return "Dependency";
  if (waits_for == "begin") return "BeginTime";
  if (waits_for == "its_array") return "JobArrayTaskLimit";
  if (state == "waiting") return line.contains("pilot") ? "Resources" : "Priority";
  const std::string failure = text_at(line, "failure");
  if (failure == "dependency_failed") return "DependencyNeverSatisfied";
  if (failure == "deadline") return "DeadLine";
  if (failure == "never_fits") return "BadConstraints";
  if (failure == "time_task") return "TimeLimit";
  if (failure == "oom_task" || failure == "oom_gpu") return "OutOfMemory";
  // What Slurm 22.05 calls a script that a signal has ended.
  if (failure == "tool_signal") return "JobLaunchFailure";
  if (failure == "tool_failed") return "NonZeroExitCode";
  return "None";
}

void read_choices(Job& job, const json::object& needs) {
  const json::array* tags = array_at(needs, "tags");
  if (tags == nullptr) return;
  for (const json::value& tag : *tags) {
    if (!tag.is_string()) continue;
    const std::string& text = job.tags.emplace_back(tag.get_string());
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = text.substr(0, equals), value = text.substr(equals + 1);
    if (key == "partition") job.partition = value;
    if (key == "account") job.account = value;
    if (key == "qos") job.qos = value;
    if (key == "reservation") job.reservation = value;
    if (key == "constraint") job.constraint = value;
  }
}

void read_needs(Job& job, const json::object& line) {
  const json::object* needs = object_at(line, "needs");
  if (needs == nullptr) return;
  if (needs->contains("cpus")) job.cpus = number_at(*needs, "cpus");
  job.memory = static_cast<std::uint64_t>(number_at(*needs, "memory"));
  job.disk = static_cast<std::uint64_t>(number_at(*needs, "disk"));
  if (needs->contains("time")) job.time_limit = number_at(*needs, "time");
  if (needs->contains("time_request")) job.time_request = number_at(*needs, "time_request");
  if (const json::object* gpus = object_at(*needs, "gpus")) {
    for (const auto& [kind, count] : *gpus) {
      job.gpus += (job.gpus.empty() ? "gpu:" : ",gpu:") +
                  (kind == "any" ? std::string() : std::string(kind) + ":") + text_at(*gpus, kind);
    }
  }
  read_choices(job, *needs);
}

std::optional<double> moment_in(const json::object& line, const char* key) {
  return line.contains(key) ? std::optional(number_at(line, key)) : std::nullopt;
}

/// Of `12`, `12.3`, `12.1-99`.
void read_id(Job& job, const std::string& text) {
  const std::size_t dot = std::min(text.find('.'), text.size());
  std::from_chars(text.data(), text.data() + dot, job.id);
  job.indices = IndexSet(IndexRange{0, 0});
  if (dot == text.size()) return;
  job.is_array = true;
  if (auto indices = parse_index_set(std::string_view(text).substr(dot + 1)))
    job.indices = std::move(*indices);
}

/// Files, and what was submitted of what is run.
void read_files(Job& job, const json::object& line) {
  const auto file = [&](const char* key) {
    std::string text = text_at(line, key);
    constexpr std::string_view kNode = "{node}";
    if (const std::size_t at = text.find(kNode); at != std::string::npos)
      text.replace(at, kNode.size(), job.node);
    return text;
  };
  job.input = file("stdin");
  job.output = file("stdout");
  job.error = file("stderr");
  if (line.contains("slurm_tasks"))
    job.tasks =
        static_cast<std::uint32_t>(std::max(1.0, std::atof(text_at(line, "slurm_tasks").c_str())));
  job.memory_per_cpu = static_cast<std::uint64_t>(
                           std::max(0.0, std::atof(text_at(line, "slurm_memory_per_cpu").c_str())))
                       << 20U;
  job.comment = text_at(line, "slurm_comment");
  const json::array* words = array_at(line, "command");
  if (words == nullptr) return;
  for (const json::value& word : *words) job.command.emplace_back(word.as_string());
  if (is_batch_command(job.command)) job.command = script_and_arguments(job.command);
  // As sbatch has it of --wrap and of what came from its standard input.
  if (!job.command.empty() && job.command.front().ends_with("/slurm_script")) job.command.clear();
}

/// What it waits for and what has not come yet, each once.
void read_waits(Job& job, const json::object& line) {
  const json::array* after = array_at(line, "after");
  const json::array* open = array_at(line, "after_open");
  if (after == nullptr || open == nullptr) return;
  const json::array* how = array_at(line, "after_how");
  const json::array* delays = array_at(line, "after_delays");
  const json::object* first = object_at(line, "after_first");
  for (std::size_t place = 0; place < after->size(); ++place) {
    const json::value& id = after->at(place);
    if (std::find(open->begin(), open->end(), id) == open->end()) continue;
    Job::Wait wait{std::string(id.as_string()), "after"};
    if (how != nullptr) wait.how = how->at(place).as_string();
    if (delays != nullptr) wait.delay = delays->at(place).to_number<double>();
    const std::string array = wait.id.substr(0, wait.id.find('.'));
    if (first != nullptr && first->contains(array))
      wait.first = first->at(array).to_number<std::uint32_t>();
    if (std::find(job.after.begin(), job.after.end(), wait) == job.after.end())
      job.after.push_back(std::move(wait));
  }
}

Job job_in(const json::object& line) {
  Job job;
  read_id(job, text_at(line, "id"));
  const auto all = parse_index_set(text_at(line, "indices"));
  job.all = steps_of(all ? *all : job.indices);
  job.numbered = flag_at(line, "numbered");
  job.from_zero = flag_at(line, "from_zero");
  job.state = state_in(line);
  job.reason = reason_in(line);
  job.name = text_at(line, "name");
  // One of sbatch's has none where its user has said so.
  if (job.name.empty() && !job.numbered) job.name = text_at(line, "tool");
  if (job.name.empty() && !job.numbered) job.name = "task";
  job.directory = text_at(line, "directory");
  job.node = text_at(line, "node");
  read_needs(job, line);
  read_files(job, line);
  job.submitted = moment_in(line, "submitted_at");
  job.started = moment_in(line, "started_at");
  job.ended = moment_in(line, "ended_at");
  job.signal = static_cast<int>(number_at(line, "signal"));
  job.exit_code = job.signal != 0 ? 0 : static_cast<int>(number_at(line, "exit_code"));
  // It never ran, as where its folder is not there: of that no code of its own tells.
  if (job.state == JobState::Failed && job.signal == 0 && job.exit_code == 0) job.exit_code = 1;
  job.peak_memory = static_cast<std::uint64_t>(number_at(line, "peak_memory"));
  job.cpu_s = number_at(line, "cpu_s");
  job.priority = static_cast<std::int64_t>(number_at(line, "priority"));
  job.one_of_after = flag_at(line, "after_one");
  job.begin = moment_in(line, "begin");
  job.deadline = moment_in(line, "deadline");
  job.is_singleton = flag_at(line, "singleton");
  job.is_requeued = !line.contains("requeue") || flag_at(line, "requeue");
  job.max_running = static_cast<std::uint32_t>(number_at(line, "max_running"));
  const auto attempt = static_cast<std::uint32_t>(number_at(line, "attempt"));
  job.restarts = attempt > 1 ? attempt - 1 : 0;
  read_waits(job, line);
  return job;
}

/// In the order in which they were submitted, elements by their index.
bool is_before(const Job& a, const Job& b) {
  const auto first = [](const Job& job) {
    return job.indices.empty() ? 0 : job.indices.ranges().back().first;
  };
  return std::make_tuple(a.id, first(a)) < std::make_tuple(b.id, first(b));
}

}  // namespace

IndexSet user_indices(const Job& job) {
  IndexSet shown;
  for (const IndexRange& range : job.indices.ranges()) {
    const std::uint32_t less = job.from_zero ? 1 : 0;
    shown.add(IndexRange{range.first - less, range.last - less});
  }
  return shown;
}

StateWords words_of(JobState state) {
  return kStates.at(static_cast<std::size_t>(state));
}

bool has_ended(JobState state) {
  return state >= JobState::Completed;
}

std::optional<JobState> parse_job_state(std::string_view text) {
  for (std::size_t i = 0; i < kStates.size(); ++i) {
    if (is_state(kStates[i], text)) return static_cast<JobState>(i);
  }
  return std::nullopt;
}

bool is_slurm_state(std::string_view text) {
  return parse_job_state(text) ||
         std::any_of(kOthers.begin(), kOthers.end(),
                     [&](const StateWords& words) { return is_state(words, text); });
}

std::uint64_t array_number_of(const Job& job) {
  return kBatchNumbers + job.id;
}

std::uint64_t number_of(const Job& job) {
  if (!job.is_array || job.is_many() || !job.numbered) return array_number_of(job);
  return array_number_of(job) +
         position_of(job.all, job.indices.ranges().front().first).value_or(0);
}

std::string array_task_id(const Job& job) {
  if (!job.is_array) return "";
  if (!job.is_many()) return std::to_string(job.index());
  std::string text = to_string(user_indices(job));
  if (job.is_rest && job.max_running != 0) text += "%" + std::to_string(job.max_running);
  return text;
}

std::string job_id(const Job& job) {
  std::string text = std::to_string(array_number_of(job));
  if (!job.is_array) return text;
  return job.is_many() ? text + "_[" + array_task_id(job) + "]" : text + "_" + array_task_id(job);
}

bool waits_for_jobs(const Job& job) {
  return job.state == JobState::Pending && (!job.after.empty() || job.is_singleton);
}

std::optional<double> eligible_since(const Job& job) {
  if (job.begin && job.begin > job.submitted) return job.begin;
  const bool is_kept = job.reason == "JobHeldUser" || job.reason == "Dependency" ||
                       job.reason == "JobArrayTaskLimit";
  return is_kept ? std::nullopt : job.submitted;
}

std::optional<double> end_of(const Job& job) {
  const auto start = start_of(job);
  if (job.ended || !start || !job.time_limit) return job.ended;
  return *start + *job.time_limit;
}

std::optional<double> start_of(const Job& job) {
  const bool waits = job.state == JobState::Pending && job.begin > job.submitted;
  return waits ? job.begin : job.started ? job.started : job.ended;
}

long cpus_of(const Job& job) {
  return static_cast<long>(std::ceil(std::max(1.0, job.cpus)));
}

std::string command_text(const Job& job) {
  std::string text;
  for (const std::string& word : job.command) text.append(text.empty() ? "" : " ").append(word);
  return text.empty() ? "(null)" : text;
}

std::int64_t priority_of(const Job& job) {
  constexpr std::int64_t kUsual = 4'294'901'760;
  return job.reason == "JobHeldUser" ? 0 : kUsual + job.priority;
}

std::uint64_t gpus_of(const Job& job) {
  std::uint64_t count = 0;
  for (const std::string& kind : split_at(job.gpus, ','))
    count += number_in<std::uint64_t>(kind.substr(kind.rfind(':') + 1)).value_or(0);
  return count;
}

std::vector<Job> jobs_of(const json::array& lines, bool together) {
  std::vector<Job> jobs;
  std::map<std::tuple<std::uint64_t, JobState, std::string>, std::size_t> waiting;
  for (const json::value& line : lines) {
    if (!line.is_object()) continue;
    Job job = job_in(line.get_object());
    if (together && job.is_array && job.state == JobState::Pending) {
      const auto [at, is_new] = waiting.try_emplace({job.id, job.state, job.reason}, jobs.size());
      if (!is_new) {
        jobs[at->second].indices.add(job.indices);
        continue;
      }
    }
    jobs.push_back(std::move(job));
  }
  for (const auto& [key, at] : waiting) {
    Job& job = jobs[at];
    // One that is held alone stands for itself.
    const bool is_all = job.all.size() == 1 && job.all.front().first == job.all.front().last;
    job.is_rest = job.indices.size() != 1 || job.reason != "JobHeldUser" || is_all;
  }
  std::stable_sort(jobs.begin(), jobs.end(), is_before);
  return jobs;
}

std::vector<Job> one_by_one(const std::vector<Job>& jobs) {
  std::vector<Job> all;
  for (const Job& job : jobs) {
    const auto ranges = job.indices.ranges();
    for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
      for (std::uint64_t index = range->first; index <= range->last; ++index) {
        all.push_back(job);
        all.back().is_rest = false;
        all.back().indices = IndexSet(
            IndexRange{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index)});
      }
    }
  }
  return all;
}

std::optional<JobName> parse_job_name(std::string_view text) {
  JobName name;
  if (const std::size_t dot = text.find('.'); dot != std::string_view::npos) {
    name.step = text.substr(dot + 1);
    text = text.substr(0, dot);
  }
  const std::size_t line = std::min(text.find_first_of("_+"), text.size());
  const auto number = number_in<decltype(name.number)>(text.substr(0, line));
  if (!number) return std::nullopt;
  name.number = *number;
  if (line == text.size()) return name;
  std::string_view indices = text.substr(line + 1);
  if (indices == "*") return name;
  if (indices.starts_with('[') && indices.ends_with(']'))
    indices = indices.substr(1, indices.size() - 2);
  indices = indices.substr(0, indices.find('%'));
  auto set = parse_index_set(indices);
  if (!set) return std::nullopt;
  name.indices = std::move(*set);
  return name;
}

std::string to_string(const JobName& name) {
  return std::to_string(name.number) + (name.indices ? "_" + to_string(*name.indices) : "");
}

std::vector<std::string> split_job_names(std::string_view text) {
  std::vector<std::string> names;
  std::string one;
  int depth = 0;
  for (const char letter : text) {
    if (letter == '[') ++depth;
    if (letter == ']') --depth;
    if (letter == ',' && depth == 0) {
      if (!one.empty()) names.push_back(std::exchange(one, {}));
    } else if (letter != ' ') {
      one += letter;
    }
  }
  if (!one.empty()) names.push_back(one);
  return names;
}

namespace {

/// The engine's indices that a name means of a job; nothing: all of them.
std::optional<IndexSet> indices_meant(const Job& job, const JobName& name) {
  IndexSet meant;
  if (name.number != array_number_of(job)) {
    // By the number that an element has of its own.
    if (!job.is_array || !job.numbered || name.indices || name.number < array_number_of(job))
      return meant;
    if (const auto index = index_at(job.all, name.number - array_number_of(job))) meant.add(*index);
    return meant;
  }
  if (!name.indices) return std::nullopt;
  if (!job.is_array) return meant;
  const std::uint32_t more = job.from_zero ? 1 : 0;
  for (const IndexRange& range : name.indices->ranges())
    meant.add(IndexRange{range.first + more, range.last + more});
  return meant;
}

}  // namespace

bool is_named(const Job& job, const JobName& name) {
  const auto meant = indices_meant(job, name);
  return !meant || !job.indices.intersection(*meant).empty();
}

void cut_to(std::vector<Job>& jobs, const std::vector<JobName>& names) {
  for (Job& job : jobs) {
    if (!job.is_many()) continue;
    IndexSet meant;
    bool whole = false;
    for (const JobName& name : names) {
      const auto some = indices_meant(job, name);
      whole = whole || !some;
      if (some) meant.add(*some);
    }
    if (whole) continue;
    job.indices = job.indices.intersection(meant);
    job.is_rest = false;
  }
}

std::vector<std::string> engine_ids(const Job& job) {
  const std::string id = std::to_string(job.id);
  if (!job.is_array) return {id};
  std::vector<std::string> ids;
  for (const IndexRange& range : job.indices.ranges())
    ids.push_back(id + "." + to_string(IndexSet(range)));
  return ids;
}

}  // namespace hpcbatch::slurm_commands
