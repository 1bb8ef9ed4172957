// A job in full: as JSON, and as scontrol shows it; and lists of nodes.
#include "slurm_commands/commands.hpp"
#include "slurm_commands/options.hpp"
#include "slurm_commands/times.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <charconv>
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
        {"memory_per_node",
         number_json(static_cast<std::int64_t>(job.memory >> 20U), job.memory != 0)},
        {"time_limit", limit_json(job)},
        {"priority", number_json(job.priority)},
        {"restart_cnt", job.restarts},
        {"current_working_directory", job.directory},
        {"submit_time", number_json(whole_seconds(job.submitted))},
        {"start_time", number_json(whole_seconds(job.started))},
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
          {"eligible", whole_seconds(job.submitted)},
          {"start", whole_seconds(job.started)},
          {"end", whole_seconds(job.ended)},
          {"limit", limit_json(job)}}},
        {"steps", json::array{}}};
    all.push_back(std::move(one));
  }
  return envelope(std::move(all));
}

std::string job_details(const Job& job, const Viewed& viewed, bool on_one_line) {
  const auto time = [&](const std::optional<double>& one) {
    return one ? moment(*one, viewed.time_format) : std::string("Unknown");
  };
  const auto or_null = [](const std::string& text) { return text.empty() ? "(null)" : text; };
  const std::string line = on_one_line ? " " : "\n   ";
  const std::string cpus = std::to_string(cpus_of(job));
  const double ran = job.started ? job.ended.value_or(viewed.now) - *job.started : 0;
  std::string text = "JobId=" + std::to_string(number_of(job));
  if (job.is_array)
    text += " ArrayJobId=" + std::to_string(array_number_of(job)) +
            " ArrayTaskId=" + array_task_id(job);
  if (job.is_array && job.max_running != 0)
    text += " ArrayTaskThrottle=" + std::to_string(job.max_running);
  text += " JobName=" + job.name;
  text += line + "UserId=" + viewed.user + "(" + std::to_string(viewed.uid) +
          ") GroupId=" + viewed.group + "(" + std::to_string(viewed.gid) + ") MCS_label=N/A";
  text += line + "Priority=" + std::to_string(job.priority) +
          " Nice=0 Account=" + or_null(job.account) +
          " QOS=" + (job.qos.empty() ? "normal" : job.qos);
  text += line + "JobState=" + std::string(words_of(job.state).word) + " Reason=" + job.reason +
          " Dependency=(null)";
  text += line + "Requeue=1 Restarts=" + std::to_string(job.restarts) +
          " BatchFlag=1 Reboot=0 ExitCode=" + std::to_string(job.exit_code) + ":" +
          std::to_string(job.signal);
  text += line + "RunTime=" + long_duration(ran) +
          " TimeLimit=" + (job.time_limit ? long_duration(*job.time_limit) : "UNLIMITED") +
          " TimeMin=N/A";
  text += line + "SubmitTime=" + time(job.submitted) + " EligibleTime=" + time(job.submitted);
  text += line + "StartTime=" + time(job.started) + " EndTime=" + time(job.ended) + " Deadline=N/A";
  text += line + "Partition=" + partition_of(job, viewed) + " AllocNode:Sid=hpcbatch:0";
  text += line + "ReqNodeList=(null) ExcNodeList=(null)";
  text += line + "NodeList=" + or_null(job.node);
  if (!job.node.empty()) text += line + "BatchHost=" + job.node;
  text +=
      line + "NumNodes=1 NumCPUs=" + cpus + " NumTasks=1 CPUs/Task=" + cpus + " ReqB:S:C:T=0:0:*:*";
  text += line + "TRES=cpu=" + cpus + (job.memory == 0 ? "" : ",mem=" + memory_text(job.memory)) +
          ",node=1,billing=" + cpus;
  text += line + "MinCPUsNode=" + cpus + " MinMemoryNode=" + memory_text(job.memory) +
          " MinTmpDiskNode=" + memory_text(job.disk);
  text += line + "Features=" + or_null(job.constraint) + " DelayBoot=00:00:00";
  text += line + "Command=(null)";
  text += line + "WorkDir=" + job.directory;
  return text + (on_one_line ? "\n" : "\n\n");
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
    std::uint64_t begin = 0, end = 0;
    const auto one = std::from_chars(first.data(), first.data() + first.size(), begin);
    const auto two = std::from_chars(last.data(), last.data() + last.size(), end);
    if (one.ec != std::errc{} || two.ec != std::errc{} || end < begin ||
        end - begin >= kMostHosts || all.size() > kMostHosts)
      wrong_list(list);
    for (std::uint64_t number = begin; number <= end; ++number) {
      std::string text = std::to_string(number);
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

}  // namespace hpcbatch::slurm_commands
