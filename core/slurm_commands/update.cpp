// scontrol update: what of a job's terms tasks of hpcbatch have too.
#include "batch/slurm_dependency.hpp"
#include "cli/show/values.hpp"
#include "slurm_commands/commands.hpp"
#include "slurm_commands/options.hpp"
#include "slurm_commands/times.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <hpcbatch/batch_time.hpp>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

namespace hpcbatch::slurm_commands {
namespace {

namespace json = boost::json;

/// A key of `scontrol update` in lower case, and what it becomes.
struct Updated {
  std::string_view name;
  std::string_view key;
};
constexpr Updated kUpdated[] = {{"name", "name"},          {"jobname", "name"},
                                {"priority", "priority"},  {"nice", "priority"},
                                {"timelimit", "time"},     {"numcpus", "cpus"},
                                {"cpuspertask", "cpus"},   {"minmemorynode", "memory"},
                                {"partition", "tags"},     {"account", "tags"},
                                {"qos", "tags"},           {"reservationname", "tags"},
                                {"features", "tags"},      {"starttime", "begin"},
                                {"eligibletime", "begin"}, {"deadline", "deadline"},
                                {"requeue", "requeue"},    {"arraytaskthrottle", "max_running"},
                                {"dependency", "after"}};

json::value tag_for(std::string_view name, const std::string& value) {
  const std::string key = name == "reservationname" ? "reservation"
                          : name == "features"      ? "constraint"
                                                    : std::string(name);
  return json::string(key + "=" + value);
}

void set_dependency(const std::string& value, json::object& set) {
  static const std::map<std::string, const char*> kKeys{{"--after", "after"},
                                                        {"--after-any", "after_any"},
                                                        {"--after-each", "after_each"},
                                                        {"--after-start", "after_start"},
                                                        {"--after-failed", "after_failed"}};
  set.emplace("after", json::array{});
  if (value.empty()) return;
  std::vector<std::string> options;
  try {
    options = batch::slurm_dependency(value);
  } catch (const std::invalid_argument& error) {
    throw CommandFailed(std::string("scontrol: error: Job dependency problem: ") + error.what());
  }
  for (std::size_t at = 0; at < options.size(); at += 2) {
    const auto key = kKeys.find(options[at]);
    // `singleton` and `?` are words without a value: the first word that is no key is one of them.
    if (key == kKeys.end())
      throw CommandFailed("scontrol: error: '" + value + "' goes with a submit alone");
    json::value& list = set[key->second];
    if (!list.is_array()) list = json::array{};
    list.as_array().push_back(json::string(options[at + 1]));
  }
}

/// `TimeLimit`, `+10:00`: of sbatch's forms that say when, none are relative here.
std::string time_text(const std::string& value) {
  const auto time = slurm_time(value);
  if (!time) throw CommandFailed("scontrol: error: Invalid TimeLimit value: " + value);
  return std::to_string(time->count()) + "s";
}

void set_one(const Updated& known, const std::string& value, json::object& set) {
  const std::string key(known.key);
  if (key == "tags") {
    json::value& tags = set[key];
    if (!tags.is_array()) tags = json::array{};
    tags.as_array().push_back(tag_for(known.name, value));
  } else if (key == "after") {
    set_dependency(value, set);
  } else if (key == "time") {
    set[key] = time_text(value);
  } else if (key == "memory") {
    const bool has_no_unit =
        !value.empty() && std::isdigit(static_cast<unsigned char>(value.back()));
    set[key] = value + (has_no_unit ? "M" : "");
  } else if (key == "requeue") {
    set[key] = value == "1" || value == "yes";
  } else if (known.name == "nice") {
    set[key] = value.starts_with('-') ? value.substr(1) : "-" + value;
  } else {
    set[key] = value;
  }
}

json::object changes_in(const std::vector<std::string>& words, std::vector<std::string>& jobs) {
  json::object set;
  for (const std::string& word : words) {
    const std::size_t equals = std::min(word.find('='), word.size());
    std::string name = word.substr(0, equals),
                value = word.substr(std::min(equals + 1, word.size()));
    for (char& letter : name)
      letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (name == "jobid" || name == "job") {
      jobs = split_job_names(value);
      continue;
    }
    const auto* const known = std::find_if(
        std::begin(kUpdated), std::end(kUpdated),
        [&](const Updated& one) { return !name.empty() && one.name.starts_with(name); });
    if (equals == word.size() || known == std::end(kUpdated))
      throw CommandFailed("scontrol: error: Update of this parameter is not supported: " + word +
                          "\nscontrol: error: hpcbatch changes Name, Priority, TimeLimit, NumCPUs, "
                          "MinMemoryNode, Partition, StartTime, Deadline, Requeue, Dependency and "
                          "ArrayTaskThrottle");
    set_one(*known, value, set);
  }
  return set;
}

/// Of the engine, of what has not ended; all of it is there, or nothing is changed.
std::set<std::string> open_ids(EngineJobs& engine, const std::vector<JobName>& names) {
  std::set<std::string> ids;
  for (const JobName& name : names) {
    std::vector<Job> jobs = jobs_of(engine.lines_of(name, now_in_seconds()), false);
    std::erase_if(jobs, [&](const Job& job) { return !is_named(job, name); });
    const bool any_open =
        std::any_of(jobs.begin(), jobs.end(), [](const Job& job) { return !has_ended(job.state); });
    if (!any_open) throw CommandFailed("Job/step already completing or completed");
    const Job& first = jobs.front();
    if (first.is_array && (name.indices || name.number != array_number_of(first)))
      throw CommandFailed("scontrol: error: hpcbatch changes arrays as a whole: name " +
                          std::to_string(array_number_of(first)) + " without an index");
    for (const Job& job : jobs) ids.insert(std::to_string(job.id));
  }
  return ids;
}

}  // namespace

int update_jobs(const Call& call, const std::vector<std::string>& words, EngineJobs& engine) {
  std::vector<std::string> jobs;
  const json::object set = changes_in(words, jobs);
  if (jobs.empty() || set.empty())
    throw CommandFailed("scontrol: error: say it as 'update JobId=2000000012 TimeLimit=1:00:00'");
  const NamedJobs named = named_jobs(jobs, "scontrol: error: Invalid job id: ");
  if (!named.real.empty()) {
    if (named.ours.empty()) {
      if (const auto code = run_real(call, call.words)) return *code;
    }
    throw CommandFailed("slurm_load_jobs error: Invalid job id specified");
  }
  const std::set<std::string> ids = open_ids(engine, named.ours);
  json::array all;
  for (const std::string& id : ids) all.push_back(json::string(id));
  engine.client().post("/v1/tasks/update", {{"ids", std::move(all)}, {"set", set}});
  return 0;
}

}  // namespace hpcbatch::slurm_commands
