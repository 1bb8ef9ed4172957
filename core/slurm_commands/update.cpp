// scontrol update: what of a job's terms tasks of hpcbatch have too.
#include "batch/slurm_dependency.hpp"
#include "batch/slurm_options.hpp"
#include "cli/show/values.hpp"
#include "documents/moments.hpp"
#include "model/item.hpp"
#include "slurm_commands/commands.hpp"
#include "slurm_commands/options.hpp"
#include "slurm_commands/reach.hpp"

#include <hpcbatch/text.hpp>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
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
constexpr Updated kUpdated[] = {{"name", "name"},
                                {"jobname", "name"},
                                {"priority", "hold"},
                                {"nice", "priority"},
                                {"timelimit", "time"},
                                {"numcpus", "cpus"},
                                {"cpuspertask", "cpus"},
                                {"minmemorynode", "memory"},
                                {"minmemorycpu", "memory"},
                                {"mintmpdisknode", "disk"},
                                {"partition", "tags"},
                                {"account", "tags"},
                                {"qos", "tags"},
                                {"reservationname", "tags"},
                                {"features", "tags"},
                                {"starttime", "begin"},
                                {"eligibletime", "begin"},
                                {"deadline", "deadline"},
                                {"requeue", "requeue"},
                                {"arraytaskthrottle", "max_running"},
                                {"dependency", "after"}};

[[noreturn]] void unsupported(const std::string& word) {
  throw CommandFailed(
      "scontrol: error: Update of this parameter is not supported: " + word +
      "\nscontrol: error: hpcbatch changes Name, Priority, Nice, TimeLimit, NumCPUs, "
      "CPUsPerTask, MinMemoryNode, MinMemoryCPU, MinTmpDiskNode, Partition, Account, "
      "QOS, Features, ReservationName, StartTime, Deadline, Requeue, Dependency and "
      "ArrayTaskThrottle");
}

[[noreturn]] void invalid(std::string_view name, const std::string& value) {
  throw CommandFailed("scontrol: error: Invalid " + std::string(name) + " value: " + value);
}

std::uint64_t whole(std::string_view name, const std::string& value) {
  const auto number = number_in<std::uint64_t>(value);
  if (!number || *number > 1'000'000'000'000) invalid(name, value);
  return *number;
}

/// In place of the one of that kind.
void set_tag(std::string_view name, const std::string& value, const Job& job, json::object& set) {
  const std::string key = name == "reservationname" ? "reservation"
                          : name == "features"      ? "constraint"
                                                    : std::string(name);
  json::value& tags = set["tags"];
  if (!tags.is_array()) {
    tags = json::array{};
    for (const std::string& tag : job.tags) tags.as_array().push_back(json::string(tag));
  }
  json::array others;
  for (const json::value& tag : tags.as_array()) {
    const std::string_view text = tag.as_string();
    if (text.substr(0, text.find('=')) != key) others.push_back(tag);
  }
  const bool is_usual = key == "partition" && value == Viewed{}.default_partition;
  if (!value.empty() && !is_usual) others.push_back(json::string(key + "=" + value));
  tags = std::move(others);
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

/// `1:00:00`; `+10` and `-10` of what it has; null: no limit.
json::value time_value(const std::string& value, const Job& job) {
  if (batch::is_slurm_unlimited(value) && value != "-1") return nullptr;
  const bool is_relative = value.starts_with('+') || value.starts_with('-');
  const auto time = batch::slurm_limit(std::string_view(value).substr(is_relative ? 1 : 0));
  if (!time || (is_relative && !job.time_limit)) invalid("TimeLimit", value);
  auto seconds = static_cast<std::int64_t>(time->count());
  if (is_relative) {
    const auto before = static_cast<std::int64_t>(*job.time_limit);
    seconds = value.front() == '+' ? before + seconds : before - seconds;
  }
  if (is_relative && seconds <= 0) invalid("TimeLimit", value);
  return seconds == 0 ? json::value() : json::string(std::to_string(seconds) + "s");
}

/// As they are counted where they are shown.
std::int64_t priority_for(const std::string& value) {
  constexpr std::int64_t kMost = 1'000'000;
  const auto number = static_cast<std::int64_t>(whole("Priority", value));
  return std::clamp(number - priority_of(Job{}), -kMost, kMost);
}

std::int64_t nice_value(const std::string& value) {
  const bool is_negative = value.starts_with('-');
  if (value.empty()) return 0;
  const auto number =
      static_cast<std::int64_t>(whole("Nice", is_negative ? value.substr(1) : value));
  return is_negative ? -number : number;
}

/// Of the keys that say an amount.
void set_amount(std::string_view name, const std::string& value, const Job& job,
                json::object& set) {
  if (name == "numcpus") {
    set["cpus"] = whole("NumCPUs", value);
  } else if (name == "cpuspertask") {
    set["cpus"] = whole("CPUsPerTask", value) * job.tasks;
  } else if (name == "minmemorynode") {
    set["memory"] = std::to_string(whole("MinMemoryNode", value)) + "M";
  } else if (name == "minmemorycpu") {
    const auto cpus = set.contains("cpus") ? set.at("cpus").to_number<std::uint64_t>()
                                           : static_cast<std::uint64_t>(cpus_of(job));
    set["memory"] = std::to_string(whole("MinMemoryCPU", value) * cpus) + "M";
  } else {
    set["disk"] = std::to_string(whole("MinTmpDiskNode", value)) + "M";
  }
}

void set_one(std::string_view name, std::string_view known_key, const std::string& value,
             const Job& job, json::object& set) {
  const std::string key(known_key);
  if (key == "tags") {
    set_tag(name, value, job, set);
  } else if (key == "after") {
    set_dependency(value, set);
  } else if (key == "time") {
    set[key] = time_value(value, job);
  } else if (key == "cpus" || key == "memory" || key == "disk") {
    set_amount(name, value, job, set);
  } else if (key == "requeue") {
    if (value != "0" && value != "1") invalid("Requeue", value);
    set[key] = value == "1";
  } else if (name == "nice") {
    set[key] = -nice_value(value);
  } else if (key == "hold") {
    // Of it alone, and not beside its array's other terms, does 0 mean that it waits.
    if (whole("Priority", value) == 0)
      set[key] = true;
    else
      set["priority"] = priority_for(value);
  } else if (key == "max_running") {
    set[key] = whole("ArrayTaskThrottle", value);
  } else if (key == "name") {
    set[key] = as_it_stands(value);
  } else {
    const auto moment = parse_coming_moment(value, now_in_seconds());
    if (!moment) throw CommandFailed("Invalid time specification (pos=0): " + value);
    if (key == "deadline" && *moment < now_in_seconds())
      throw CommandFailed("Invalid time specified");
    set[key] = *moment;
  }
}

struct Change {
  std::string_view name, key;
  std::string value;
};

/// By its whole name, or by the beginning of one alone.
const Updated* updated_named(const std::string& name) {
  constexpr std::size_t kLeast = 3;
  const Updated* found = nullptr;
  for (const Updated& one : kUpdated) {
    if (one.name == name) return &one;
    if (name.size() < kLeast || !one.name.starts_with(name)) continue;
    if (found != nullptr) return nullptr;
    found = &one;
  }
  return found;
}

std::vector<Change> changes_in(const std::vector<std::string>& words,
                               std::vector<std::string>& jobs) {
  std::vector<Change> changes;
  for (const std::string& word : words) {
    const std::size_t equals = std::min(word.find('='), word.size());
    std::string name = lower_case(word.substr(0, equals)),
                value = word.substr(std::min(equals + 1, word.size()));
    if (name == "jobid" || name == "job") {
      jobs = split_job_names(value);
      continue;
    }
    // `TimeLimit+=5`
    if (name.ends_with('+') || name.ends_with('-')) {
      value.insert(0, 1, name.back());
      name.pop_back();
      if (name != "timelimit") unsupported(word);
    }
    const Updated* known = updated_named(name);
    const bool stands_alone = known != nullptr && known->name == "nice";
    if (known == nullptr || (equals == word.size() && !stands_alone)) unsupported(word);
    changes.push_back({known->name, known->key, equals == word.size() ? "100" : std::move(value)});
  }
  return changes;
}

constexpr const char* kDenied = "Access/permission denied";

/// Why these do not reach a job that runs, in the words of Slurm 22.05; empty: they do.  There its
/// user may lower the limit; here its pilot keeps the one that it was given.
std::string why_not_running(const std::vector<Change>& changes) {
  constexpr std::array<std::string_view, 5> kReach{"name", "priority", "hold", "max_running",
                                                   "requeue"};
  std::string why;
  for (const Change& change : changes) {
    if (std::find(kReach.begin(), kReach.end(), change.key) != kReach.end()) continue;
    if (change.key != "time") return "Job is no longer pending execution";
    why = kDenied;
  }
  return why;
}

/// What the engine is asked for: those that are told the same are told it at once.
struct UpdateAsked {
  std::map<std::string, std::pair<json::object, json::array>> told;
  json::array held;
};

void ask_for(const Reach& reach, const std::vector<Change>& changes, UpdateAsked& asked) {
  json::object set;
  for (const Change& change : changes)
    set_one(change.name, change.key, change.value, reach.jobs.back(), set);
  if (set.erase("hold") != 0) {
    for (const Job& job : reach.jobs)
      for (const std::string& id : engine_ids(job)) asked.held.push_back(json::string(id));
  }
  if (set.empty()) return;
  if (!reach.is_whole)
    throw CommandFailed("scontrol: error: hpcbatch changes arrays as a whole: name " +
                        std::to_string(reach.number) + " without an index; nothing was changed");
  auto& [same, ids] = asked.told[json::serialize(set)];
  same = std::move(set);
  ids.push_back(json::string(std::to_string(reach.jobs.back().id)));
}

int update_ours(const std::vector<Change>& changes, const std::vector<JobName>& names,
                EngineJobs& engine) {
  for (const JobName& name : names) {
    if (!name.step.empty())
      throw CommandFailed("Invalid job id specified for job " + to_string(name) + "." + name.step);
  }
  engine.tell_files();
  const std::string not_running = why_not_running(changes);
  const auto why = [&](const Job& job) -> std::string {
    if (has_ended(job.state)) return kIsOver;
    return job.state == JobState::Pending ? "" : not_running;
  };
  UpdateAsked asked;
  std::vector<Reach> all;
  for (const JobName& name : names) {
    all.push_back(reach_of(jobs_of(engine.lines_of(name, std::nullopt), false), name, why));
    if (!all.back().jobs.empty()) ask_for(all.back(), changes, asked);
  }
  for (auto& [text, one] : asked.told)
    engine.client().post("/v1/tasks/update", {{"ids", one.second}, {"set", one.first}});
  if (!asked.held.empty()) engine.client().post("/v1/tasks/hold", {{"ids", std::move(asked.held)}});
  bool has_failed = false;
  for (const Reach& reach : all) {
    has_failed = complain_of(reach) || has_failed;
    if (reach.refused.contains(kDenied))
      std::fputs(
          "scontrol: error: a job that runs keeps the time limit with which it has started\n",
          stderr);
  }
  return has_failed ? 1 : 0;
}

}  // namespace

int update_jobs(const Call& call, const std::vector<std::string>& words, EngineJobs& engine) {
  std::vector<std::string> jobs;
  const std::vector<Change> changes = changes_in(words, jobs);
  if (!jobs.empty() && changes.empty()) throw CommandFailed("No changes specified");
  if (jobs.empty())
    throw CommandFailed("scontrol: error: say it as 'update JobId=2000000012 TimeLimit=1:00:00'");
  const NamedJobs named = named_jobs(jobs, "Invalid job id specified for job ");
  if (named.real.empty()) return update_ours(changes, named.ours, engine);
  if (named.ours.empty()) {
    if (const auto code = run_real(call, call.words)) return *code;
  }
  throw CommandFailed("slurm_load_jobs error: Invalid job id specified");
}

}  // namespace hpcbatch::slurm_commands
