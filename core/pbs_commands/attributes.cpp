// A job in full, as `qstat -f` has it.
#include "pbs_commands/commands.hpp"
#include "pbs_commands/listing.hpp"
#include "slurm_commands/times.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <algorithm>

namespace hpcbatch::pbs_commands {
namespace {

namespace json = boost::json;
using slurm_commands::Job;
using slurm_commands::JobState;
using slurm_commands::long_duration;
using slurm_commands::moment;

constexpr std::size_t kLineWidth = 79;

std::string time_text(double seconds) {
  return moment(seconds, "%a %b %e %H:%M:%S %Y");
}

std::string kilobytes(std::uint64_t bytes) {
  return std::to_string(bytes >> 10U) + "kb";
}

/// `1:ncpus=2:mem=1048576kb:ngpus=1`
std::string chunk_of(const Job& job) {
  std::string chunk = "ncpus=" + std::to_string(cpus_of(job));
  if (job.memory != 0) chunk += ":mem=" + kilobytes(job.memory);
  if (!job.gpus.empty()) chunk += ":ngpus=" + job.gpus.substr(job.gpus.rfind(':') + 1);
  return chunk;
}

json::object used_by(const Job& job, const Viewed& viewed) {
  const double ran = std::max(0.0, job.ended.value_or(viewed.now) - job.started.value_or(0));
  const auto percent = static_cast<std::int64_t>(ran > 0 ? 100 * job.cpu_s / ran : 0);
  return {{"cpupercent", percent},
          {"cput", long_duration(job.cpu_s)},
          {"mem", kilobytes(job.peak_memory)},
          {"ncpus", cpus_of(job)},
          {"vmem", kilobytes(job.peak_memory)},
          {"walltime", long_duration(ran)}};
}

json::object asked_by(const Job& job) {
  json::object asked;
  if (job.memory != 0) asked["mem"] = kilobytes(job.memory);
  asked["ncpus"] = cpus_of(job);
  if (!job.gpus.empty())
    asked["ngpus"] = std::stoll("0" + job.gpus.substr(job.gpus.rfind(':') + 1));
  asked["nodect"] = 1;
  asked["place"] = "free";
  asked["select"] = "1:" + chunk_of(job);
  if (job.time_limit) asked["walltime"] = long_duration(*job.time_limit);
  return asked;
}

std::string how_it_ended(const Job& job, const std::string& owner) {
  switch (job.state) {
    case JobState::Completed:
      return " and finished";
    case JobState::Timeout:
      return " and exceeded resource walltime";
    case JobState::OutOfMemory:
      return " and exceeded resource mem";
    case JobState::Cancelled:
      return " and terminated by " + owner;
    case JobState::NodeFail:
    case JobState::Preempted:
      return " and lost with its node";
    default:
      return slurm_commands::has_ended(job.state) ? " and failed" : "";
  }
}

std::string comment_on(const PbsJob& job, const std::string& owner) {
  if (job.job.reason == "BadConstraints") return "Can Never Run: no shape is large enough";
  if (!job.job.started) return "";
  const std::string when = moment(*job.job.started, "%a %b %d at %H:%M");
  if (job.is_array) {
    const std::string end = job.failed == 0 ? " and finished" : " and terminated";
    return "Job Array Began at " + when + (job.array_is_over ? end : "");
  }
  return "Job run at " + when + " on (" + job.job.node + ":" + chunk_of(job.job) + ")" +
         how_it_ended(job.job, owner);
}

int substate_of(const PbsJob& job) {
  constexpr int kQueued = 10, kHeld = 20, kDependent = 22, kRunning = 42, kExiting = 50,
                kBegun = 70, kDeleted = 91, kFinished = 92, kFailed = 93;
  switch (state_of(job)) {
    case 'Q':
      return kQueued;
    case 'H':
      return job.job.reason == "Dependency" ? kDependent : kHeld;
    case 'R':
      return kRunning;
    case 'E':
      return kExiting;
    case 'B':
      return kBegun;
    default:
      if (job.job.state == JobState::Cancelled) return kDeleted;
      return exit_status_of(job) == 0 ? kFinished : kFailed;
  }
}

std::string hold_types(const Job& job) {
  if (job.reason == "JobHeldUser") return "u";
  return job.reason == "Dependency" || job.reason == "DependencyNeverSatisfied" ? "s" : "n";
}

void add_array(json::object& all, const PbsJob& job) {
  if (job.is_array) {
    all["array"] = "True";
    all["array_state_count"] = "Queued:" + std::to_string(job.queued + job.held) +
                               " Running:" + std::to_string(job.running) +
                               " Exiting:" + std::to_string(job.exiting) +
                               " Expired:" + std::to_string(job.ended);
    all["array_indices_submitted"] = submitted_indices(job.job);
    all["array_indices_remaining"] = job.remaining;
    if (job.job.max_running != 0) all["max_run_subjobs"] = job.job.max_running;
  } else if (job.is_subjob()) {
    all["array_id"] = std::to_string(array_number_of(job.job)) + "[]." + kServer;
    all["array_index"] = job.job.index();
  }
}

std::string as_text(const json::value& value) {
  return value.is_string() ? std::string(value.get_string()) : json::serialize(value);
}

/// Each attribute, those of a list by `Resource_List.ncpus`.
template <class Use>
void for_each_attribute(const json::object& attributes, Use use) {
  for (const auto& [name, value] : attributes) {
    if (!value.is_object()) {
      use(std::string(name), as_text(value));
      continue;
    }
    for (const auto& [part, amount] : value.get_object())
      use(std::string(name) + "." + std::string(part), as_text(amount));
  }
}

void add_json(std::string& text, const json::object& object, std::size_t depth) {
  text += "{\n";
  std::size_t left = object.size();
  for (const auto& [name, value] : object) {
    text.append(depth + 1, '\t').append(json::serialize(json::value(name))).append(":\t");
    if (value.is_object())
      add_json(text, value.get_object(), depth + 1);
    else
      text += json::serialize(value);
    text += --left == 0 ? "\n" : ",\n";
  }
  text.append(depth, '\t').append("}");
}

}  // namespace

std::string queue_of(const PbsJob& job, const Viewed& viewed) {
  return job.job.partition.empty() ? viewed.default_partition : job.job.partition;
}

json::object attributes_of(const PbsJob& job, const Viewed& viewed, const std::string& host) {
  const Job& task = job.job;
  const double submitted = task.submitted.value_or(0);
  const std::string owner = viewed.user + "@" + host;
  json::object all{{"Job_Name", task.name}, {"Job_Owner", owner}};
  if (task.started && !job.is_array) all["resources_used"] = used_by(task, viewed);
  all["job_state"] = std::string(1, state_of(job));
  all["queue"] = queue_of(job, viewed);
  all["server"] = kServer;
  if (!task.account.empty()) all["Account_Name"] = task.account;
  all["Checkpoint"] = "u";
  all["ctime"] = time_text(submitted);
  if (!task.node.empty() && !job.is_array) {
    all["exec_host"] = task.node + "/0";
    all["exec_vnode"] = "(" + task.node + ":" + chunk_of(task) + ")";
  }
  all["Hold_Types"] = hold_types(task);
  all["mtime"] = time_text(task.ended.value_or(task.started.value_or(submitted)));
  all["Priority"] = task.priority;
  all["qtime"] = time_text(submitted);
  all["Rerunable"] = "True";
  all["Resource_List"] = asked_by(task);
  if (task.started) all["stime"] = time_text(*task.started);
  const bool is_over = state_of(job) == 'F' || state_of(job) == 'X';
  if (task.ended && is_over) all["obittime"] = time_text(*task.ended);
  if (!task.directory.empty()) all["jobdir"] = task.directory;
  all["substate"] = substate_of(job);
  if (const std::string comment = comment_on(job, owner); !comment.empty())
    all["comment"] = comment;
  all["etime"] = time_text(submitted);
  if (task.started && !job.is_array) all["run_count"] = task.restarts + 1;
  if (const auto status = exit_status_of(job)) all["Exit_status"] = *status;
  add_array(all, job);
  all["project"] = "_pbs_project_default";
  all["Submit_Host"] = host;
  return all;
}

std::string attributes_as_text(const std::string& id, const json::object& attributes, bool wide) {
  std::string text = "Job Id: " + id + "\n";
  for_each_attribute(attributes, [&](const std::string& name, const std::string& value) {
    std::string line = "    " + name + " = " + value;
    while (!wide && line.size() > kLineWidth) {
      text.append(line, 0, kLineWidth).append("\n");
      line = "\t" + line.substr(kLineWidth);
    }
    text.append(line).append("\n");
  });
  return text + "\n";
}

std::string attributes_as_dsv(const std::string& id, const json::object& attributes,
                              const std::string& delimiter) {
  std::string text = "Job Id: " + id;
  for_each_attribute(attributes, [&](const std::string& name, const std::string& value) {
    text.append(delimiter).append(name).append("=").append(value);
  });
  return text + "\n";
}

std::string json_as_text(const json::object& object) {
  std::string text;
  add_json(text, object, 0);
  return text + "\n";
}

}  // namespace hpcbatch::pbs_commands
