// A job in full: as JSON, and as scontrol shows it; and lists of nodes.
#include "slurm_commands/commands.hpp"
#include "slurm_commands/options.hpp"
#include "slurm_commands/times.hpp"

#include <hpcbatch/text.hpp>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <cmath>

namespace hpcbatch::slurm_commands {
namespace {

namespace json = boost::json;

std::int64_t whole_seconds(const std::optional<double>& time) {
  return static_cast<std::int64_t>(std::floor(time.value_or(0)));
}

json::object number_json(std::int64_t number, bool set = true, bool infinite = false) {
  return {{"set", set}, {"infinite", infinite}, {"number", number}};
}

json::object limit_json(const Job& job) {
  if (!job.time_limit) return number_json(0, false, true);
  return number_json(static_cast<std::int64_t>(*job.time_limit / 60));
}

json::object exit_json(const Job& job) {
  json::object code{{"status", json::array{job.state == JobState::Completed ? "SUCCESS" : "ERROR"}},
                    {"return_code", number_json(job.exit_code)},
                    {"signal", {{"id", number_json(job.signal, job.signal != 0)}, {"name", ""}}}};
  if (!has_ended(job.state)) code["status"] = json::array{"PENDING"};
  return code;
}

json::object meta_json() {
  return {{"plugin", {{"type", ""}, {"name", ""}, {"data_parser", "data_parser/v0.0.40"}}},
          {"slurm",
           {{"version", {{"major", "23"}, {"micro", "0"}, {"minor", "11"}}},
            {"release", "23.11.0-hpcbatch"},
            {"cluster", "hpcbatch"}}}};
}

json::object array_json(const Job& job) {
  json::object task = number_json(0, false);
  if (job.is_array && !job.is_many()) task = number_json(job.index());
  return task;
}

std::string partition_of(const Job& job, const Viewed& viewed) {
  return job.partition.empty() ? viewed.default_partition : job.partition;
}

json::object envelope(json::array jobs) {
  return {{"jobs", std::move(jobs)},
          {"meta", meta_json()},
          {"errors", json::array{}},
          {"warnings", json::array{}}};
}

}  // namespace

json::object jobs_json(const std::vector<Job>& jobs, const Viewed& viewed) {
  json::array all;
  for (const Job& job : jobs) {
    json::object one{
        {"job_id", number_of(job)},
        {"array_job_id",
         number_json(static_cast<std::int64_t>(job.is_array ? array_number_of(job) : 0))},
        {"array_task_id", array_json(job)},
        {"array_task_string", job.is_many() ? array_task_id(job) : ""},
        {"name", job.name},
        {"job_state", json::array{json::string(words_of(job.state).word)}},
        {"state_reason", job.reason},
        {"user_name", viewed.user},
        {"user_id", viewed.uid},
        {"group_name", viewed.group},
        {"group_id", viewed.gid},
        {"partition", partition_of(job, viewed)},
        {"account", job.account},
        {"qos", job.qos.empty() ? "normal" : job.qos},
        {"comment", job.comment},
        {"nodes", job.node},
        {"batch_host", job.node},
        {"node_count", number_json(1)},
        {"cpus", number_json(cpus_of(job))},
        {"memory_per_cpu", number_json(static_cast<std::int64_t>(job.memory_per_cpu >> 20U),
                                       job.memory_per_cpu != 0)},
        {"memory_per_node", number_json(static_cast<std::int64_t>(job.memory >> 20U),
                                        job.memory != 0 && job.memory_per_cpu == 0)},
        {"time_limit", limit_json(job)},
        {"priority", number_json(priority_of(job))},
        {"restart_cnt", job.restarts},
        {"current_working_directory", job.directory},
        {"command", job.command.empty() ? "" : command_text(job)},
        {"standard_error", job.error},
        {"standard_input", job.input.empty() ? "/dev/null" : job.input},
        {"standard_output", job.output},
        {"dependency", waits_for_jobs(job) ? dependency_text(job, viewed) : ""},
        {"features", job.constraint},
        {"tres_per_node", job.gpus.empty() ? "" : "gres:" + job.gpus},
        {"tasks", number_json(job.tasks)},
        {"hold", job.reason == "JobHeldUser"},
        {"requeue", job.is_requeued},
        {"deadline", number_json(whole_seconds(job.deadline))},
        {"eligible_time", number_json(whole_seconds(eligible_since(job)))},
        {"submit_time", number_json(whole_seconds(job.submitted))},
        {"start_time", number_json(whole_seconds(start_of(job)))},
        {"end_time", number_json(whole_seconds(job.ended))},
        {"exit_code", exit_json(job)}};
    all.push_back(std::move(one));
  }
  return envelope(std::move(all));
}

json::object accounting_json(const std::vector<Job>& jobs, const Viewed& viewed) {
  json::array all;
  for (const Job& job : jobs) {
    const double ran = job.started ? job.ended.value_or(viewed.now) - *job.started : 0;
    json::object one{
        {"job_id", number_of(job)},
        {"name", job.name},
        {"user", viewed.user},
        {"group", viewed.group},
        {"account", job.account},
        {"partition", partition_of(job, viewed)},
        {"qos", job.qos.empty() ? "normal" : job.qos},
        {"cluster", "hpcbatch"},
        {"nodes", job.node.empty() ? "None assigned" : job.node},
        {"working_directory", job.directory},
        {"array",
         {{"job_id", job.is_array ? array_number_of(job) : 0}, {"task_id", array_json(job)}}},
        {"state",
         {{"current", json::array{json::string(words_of(job.state).word)}},
          {"reason", job.reason}}},
        {"exit_code", exit_json(job)},
        {"derived_exit_code", exit_json(job)},
        {"required",
         {{"CPUs", cpus_of(job)},
          {"memory_per_node", number_json(static_cast<std::int64_t>(job.memory >> 20U))}}},
        {"time",
         {{"elapsed", static_cast<std::int64_t>(std::max(0.0, ran))},
          {"submission", whole_seconds(job.submitted)},
          {"eligible", whole_seconds(eligible_since(job))},
          {"start", whole_seconds(job.started)},
          {"end", whole_seconds(job.ended)},
          {"limit", limit_json(job)}}},
        {"steps", json::array{}}};
    all.push_back(std::move(one));
  }
  return envelope(std::move(all));
}

namespace {

std::string gpus_in_tres(const Job& job) {
  return gpus_of(job) == 0 ? "" : ",gres/gpu=" + std::to_string(gpus_of(job));
}

std::vector<std::string> lines_of(const Job& job, const Viewed& viewed) {
  const auto time = [&](const std::optional<double>& one) {
    return one ? moment(*one, viewed.time_format) : std::string("Unknown");
  };
  const auto or_null = [](const std::string& text) { return text.empty() ? "(null)" : text; };
  const auto file = [](const std::string& path) { return path.empty() ? "/dev/null" : path; };
  const std::string cpus = std::to_string(cpus_of(job)), tasks = std::to_string(job.tasks);
  const std::string cpus_of_each = std::to_string(std::max(1L, cpus_of(job) / job.tasks));
  const double ran = job.started ? job.ended.value_or(viewed.now) - *job.started : 0;
  const std::string eligible = time(eligible_since(job));
  const std::string memory = job.memory == 0 ? "0" : memory_text(job.memory);
  const std::string least_memory = job.memory_per_cpu == 0
                                       ? " MinMemoryNode=" + memory
                                       : " MinMemoryCPU=" + memory_text(job.memory_per_cpu);
  std::string first = "JobId=" + std::to_string(number_of(job));
  if (job.is_array)
    first += " ArrayJobId=" + std::to_string(array_number_of(job)) +
             " ArrayTaskId=" + array_task_id(job);
  if (job.is_array && job.max_running != 0)
    first += " ArrayTaskThrottle=" + std::to_string(job.max_running);
  std::vector<std::string> lines{
      first + " JobName=" + job.name,
      "UserId=" + viewed.user + "(" + std::to_string(viewed.uid) + ") GroupId=" + viewed.group +
          "(" + std::to_string(viewed.gid) + ") MCS_label=N/A",
      "Priority=" + std::to_string(priority_of(job)) + " Nice=" + std::to_string(-job.priority) +
          " Account=" + or_null(job.account) + " QOS=" + (job.qos.empty() ? "normal" : job.qos),
      "JobState=" + std::string(words_of(job.state).word) + " Reason=" + job.reason +
          " Dependency=" + dependency_text(job, viewed),
      std::string("Requeue=") + (job.is_requeued ? "1" : "0") +
          " Restarts=" + std::to_string(job.restarts) + " BatchFlag=1 Reboot=0 ExitCode=" +
          std::to_string(job.exit_code) + ":" + std::to_string(job.signal),
      "RunTime=" + long_duration(ran) +
          " TimeLimit=" + (job.time_limit ? long_duration(*job.time_limit) : "UNLIMITED") +
          " TimeMin=" + (job.time_request ? long_duration(*job.time_request) : "N/A"),
      "SubmitTime=" + time(job.submitted) + " EligibleTime=" + eligible,
      "AccrueTime=" + eligible,
      "StartTime=" + time(start_of(job)) + " EndTime=" + time(end_of(job)) +
          " Deadline=" + (job.deadline ? time(job.deadline) : "N/A"),
      "SuspendTime=None SecsPreSuspend=0 LastSchedEval=" +
          time(job.started ? job.started : job.submitted) + " Scheduler=Main",
      "Partition=" + partition_of(job, viewed) + " AllocNode:Sid=hpcbatch:0",
      "ReqNodeList=(null) ExcNodeList=(null)",
      "NodeList=" + job.node};
  if (!job.node.empty()) lines.push_back("BatchHost=" + job.node);
  lines.insert(lines.end(), {"NumNodes=1 NumCPUs=" + cpus + " NumTasks=" + tasks +
                                 " CPUs/Task=" + cpus_of_each + " ReqB:S:C:T=0:0:*:*",
                             "TRES=cpu=" + cpus + (job.memory == 0 ? "" : ",mem=" + memory) +
                                 ",node=1,billing=" + cpus + gpus_in_tres(job),
                             "Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*",
                             "MinCPUsNode=" + cpus_of_each + least_memory +
                                 " MinTmpDiskNode=" + (job.disk == 0 ? "0" : memory_text(job.disk)),
                             "Features=" + or_null(job.constraint) + " DelayBoot=00:00:00",
                             "OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)",
                             "Command=" + command_text(job), "WorkDir=" + job.directory});
  if (!job.comment.empty()) lines.push_back("Comment=" + job.comment + " ");
  lines.insert(lines.end(), {"StdErr=" + file(job.error), "StdIn=" + file(job.input),
                             "StdOut=" + file(job.output), "Power="});
  if (!job.gpus.empty()) lines.push_back("TresPerNode=gres:" + job.gpus);
  return lines;
}

}  // namespace

std::string job_details(const Job& job, const Viewed& viewed, bool on_one_line) {
  std::string text;
  for (const std::string& line : lines_of(job, viewed))
    text.append(text.empty() ? "" : on_one_line ? " " : "\n   ").append(line);
  return text + (on_one_line ? " \n" : "\n\n");
}

namespace {

constexpr std::size_t kMostHosts = 65'536;

[[noreturn]] void wrong_list(std::string_view list) {
  throw CommandFailed("scontrol: error: Invalid hostlist: " + std::string(list));
}

/// Each of `1-3,007-009`.
std::vector<std::string> numbers_of(std::string_view ranges, std::string_view list) {
  std::vector<std::string> all;
  for (const std::string& range : split_at(ranges, ',')) {
    const std::size_t dash = std::min(range.find('-'), range.size());
    const std::string first = range.substr(0, dash);
    const std::string last = dash == range.size() ? first : range.substr(dash + 1);
    const auto begin = number_in<std::uint64_t>(first), end = number_in<std::uint64_t>(last);
    if (!begin || !end || *end < *begin || *end - *begin >= kMostHosts || all.size() > kMostHosts)
      wrong_list(list);
    for (std::uint64_t i = 0; i <= *end - *begin; ++i) {
      std::string text = std::to_string(*begin + i);
      if (text.size() < first.size()) text.insert(0, first.size() - text.size(), '0');
      all.push_back(std::move(text));
    }
  }
  return all;
}

void expand(std::string_view host, std::string_view list, std::vector<std::string>& hosts) {
  const std::size_t open = host.find('[');
  if (open == std::string_view::npos) {
    hosts.emplace_back(host);
    return;
  }
  const std::size_t close = host.find(']', open);
  if (close == std::string_view::npos) wrong_list(list);
  std::vector<std::string> rests;
  expand(host.substr(close + 1), list, rests);
  for (const std::string& number : numbers_of(host.substr(open + 1, close - open - 1), list)) {
    for (const std::string& rest : rests) {
      if (hosts.size() >= kMostHosts) wrong_list(list);
      hosts.emplace_back(host.substr(0, open));
      hosts.back().append(number).append(rest);
    }
  }
}

}  // namespace

std::vector<std::string> expand_hosts(std::string_view list) {
  std::vector<std::string> hosts;
  for (const std::string& host : split_job_names(list)) expand(host, list, hosts);
  return hosts;
}

namespace {

/// Whether a number comes right behind another; zeros before one belong to the name.
bool follows(const std::string& number, const std::string& last) {
  constexpr std::size_t kMostDigits = 18;
  const bool is_padded = number.front() == '0' || last.front() == '0';
  if (is_padded && number.size() != last.size()) return false;
  return number.size() < kMostDigits && std::stoull(number) == std::stoull(last) + 1;
}

/// `1-3,7` of numbers in their order.
std::string ranges_of(const std::vector<std::string>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t first = i;
    while (i + 1 < numbers.size() && follows(numbers[i + 1], numbers[i])) ++i;
    text.append(text.empty() ? "" : ",").append(numbers[first]);
    if (i != first) text.append("-").append(numbers[i]);
  }
  return text;
}

std::size_t begin_of_number(const std::string& host) {
  return host.find_last_not_of("0123456789") + 1;
}

}  // namespace

std::string host_list(const std::vector<std::string>& hosts) {
  std::string text;
  for (std::size_t i = 0; i < hosts.size();) {
    const std::string begin = hosts[i].substr(0, begin_of_number(hosts[i]));
    std::vector<std::string> numbers;
    do {
      numbers.push_back(hosts[i].substr(begin.size()));
      ++i;
    } while (!numbers.front().empty() && i < hosts.size() && hosts[i].size() > begin.size() &&
             begin_of_number(hosts[i]) == begin.size() && hosts[i].starts_with(begin));
    text.append(text.empty() ? "" : ",").append(begin);
    const bool is_one = numbers.size() == 1;
    text.append(is_one ? "" : "[").append(ranges_of(numbers)).append(is_one ? "" : "]");
  }
  return text;
}

}  // namespace hpcbatch::slurm_commands
