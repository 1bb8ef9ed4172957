// squeue and sacct: which jobs are meant, and what is printed.
#include "cli/process/process.hpp"
#include "cli/show/values.hpp"
#include "documents/moments.hpp"
#include "slurm_commands/commands.hpp"
#include "slurm_commands/options.hpp"
#include "slurm_commands/times.hpp"
#include "slurm_commands/wanted.hpp"

#include <hpcbatch/text.hpp>

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <set>
#include <utility>

namespace hpcbatch::slurm_commands {
namespace {

namespace json = boost::json;

/// Of an option, else of a variable of that name.
std::string said(const Parsed& parsed, const char* option, const Call& call, const char* name) {
  return parsed.value(option).value_or(variable(call, name));
}

/// All that may be wanted, whatever its name.
std::vector<Job> find_wanted(EngineJobs& engine, const Wanted& wanted, double since) {
  return jobs_of(wanted.admits_ended() ? engine.open_and_ended_since(since) : engine.open_jobs(),
                 true);
}

bool is_named_by(const Job& job, const std::vector<JobName>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const JobName& name) { return is_named(job, name); });
}

}  // namespace

std::vector<Job> find_named(EngineJobs& engine, const std::vector<JobName>& names, bool together,
                            std::optional<double> since) {
  std::vector<Job> found;
  std::set<std::pair<std::uint64_t, std::uint32_t>> seen;
  for (const JobName& name : names) {
    for (const Job& job : jobs_of(engine.lines_of(name, since), together)) {
      if (is_named(job, name) && seen.emplace(job.id, job.indices.ranges().back().first).second)
        found.push_back(job);
    }
  }
  return found;
}

NamedJobs named_jobs(const std::vector<std::string>& words, const std::string& message) {
  NamedJobs named;
  for (const std::string& word : words) {
    for (const std::string& text : split_job_names(word)) {
      const auto name = parse_job_name(text);
      if (!name) throw CommandFailed(message + text);
      if (is_ours(*name))
        named.ours.push_back(*name);
      else
        named.real.push_back(text);
    }
  }
  return named;
}

namespace {

Wanted wanted_by(const Parsed& parsed, const Call& call, const Viewed& viewed) {
  Wanted wanted;
  const std::string states = said(parsed, "states", call, "SQUEUE_STATES");
  if (parsed.has("start"))
    wanted.states = std::set{JobState::Pending};
  else if (states.empty() && parsed.has("json"))
    wanted.states.reset();
  else if (states.empty() && !parsed.has("states"))
    wanted.states = std::set{JobState::Pending, JobState::Running, JobState::Completing};
  else
    wanted.states = states_in(split_at(states, ','), "squeue");
  wanted.names = words_of(parsed, "name", call, "SQUEUE_NAMES");
  wanted.partitions = words_of(parsed, "partition", call, "SQUEUE_PARTITION");
  wanted.accounts = words_of(parsed, "account", call, "SQUEUE_ACCOUNT");
  wanted.qos = words_of(parsed, "qos", call, "SQUEUE_QOS");
  wanted.nodes = words_of(parsed, "nodelist");
  const Words users = words_of(parsed, "user", call, "SQUEUE_USERS");
  check_users(users, "squeue: error: Invalid user: ");
  wanted.nobody = !parsed.has("me") && is_for_others(users, viewed);
  return wanted;
}

std::vector<Column> columns_of(const Parsed& parsed, const Call& call, const Viewed& viewed) {
  if (const auto format = parsed.value("Format")) return squeue_long_columns(*format, viewed);
  if (const auto format = parsed.value("format")) return squeue_columns(*format, viewed);
  if (const std::string format = variable(call, "SQUEUE_FORMAT2"); !format.empty())
    return squeue_long_columns(format, viewed);
  if (const std::string format = variable(call, "SQUEUE_FORMAT"); !format.empty())
    return squeue_columns(format, viewed);
  if (parsed.has("start")) return squeue_columns(kSqueueStartFormat, viewed);
  return squeue_columns(parsed.has("long") ? kSqueueLongFormat : kSqueueFormat, viewed);
}

/// Whether it shows more of jobs than lines of tasks have anyhow.
bool asks_for_files(const Parsed& parsed, const Call& call) {
  if (parsed.has("json")) return true;
  const std::string letters = said(parsed, "format", call, "SQUEUE_FORMAT");
  for (std::size_t at = letters.find('%'); at != std::string::npos;
       at = letters.find('%', at + 1)) {
    const std::size_t letter = letters.find_first_not_of(".0123456789", at + 1);
    if (letter != std::string::npos &&
        std::string_view("ckmo").find(letters[letter]) != std::string_view::npos)
      return true;
  }
  const std::string names = lower_case(said(parsed, "Format", call, "SQUEUE_FORMAT2"));
  constexpr std::array<std::string_view, 7> kNames{
      "command", "std", "numtasks", "comment", "minmemory", "mincpus", "cpus-per-task"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view name) { return names.find(name) != std::string::npos; });
}

/// The words less what the real command does not know, or is asked in its place.
std::vector<std::string> words_for_real(const Call& call, const NamedJobs& named) {
  std::vector<std::string> words{"-h"};
  bool skips = false;
  for (const std::string& word : call.words) {
    const bool is_list = word == "-j" || word == "--jobs" || word == "--job";
    const bool is_value = skips || word == "--real" || word == "-h" || word == "--noheader" ||
                          word.starts_with("--jobs=") || word.starts_with("--job=") ||
                          (word.starts_with("-j") && !is_list);
    skips = is_list;
    if (!is_list && !is_value) words.push_back(word);
  }
  if (!named.real.empty()) words.push_back("--jobs=" + hpcbatch::joined(named.real, ","));
  return words;
}

std::vector<Job> jobs_in_queue(EngineJobs& engine, const Parsed& parsed, const NamedJobs& named,
                               bool by_name, const Wanted& wanted, const Viewed& viewed) {
  const bool together = !parsed.has("array");
  const double since = viewed.now - kShownAfterEnd;
  std::vector<Job> jobs;
  if (by_name && named.ours.size() <= kNamesOneByOne) {
    jobs = find_named(engine, named.ours, together, since);
    std::erase_if(jobs, [&](const Job& job) {
      return job.ended && *job.ended < since && has_ended(job.state);
    });
    // An element that an array does not have is none, and no mistake.
    const auto is_there = [&](const JobName& name) {
      return name.indices && !engine.lines_of(name, since).empty();
    };
    if (jobs.empty() && named.real.empty() && named.ours.size() == 1 &&
        !is_there(named.ours.front()))
      throw CommandFailed("slurm_load_jobs error: Invalid job id specified");
    cut_to(jobs, named.ours);
  } else {
    jobs = find_wanted(engine, wanted, since);
    if (by_name) std::erase_if(jobs, [&](const Job& job) { return !is_named_by(job, named.ours); });
    if (by_name) cut_to(jobs, named.ours);
  }
  return together ? jobs : one_by_one(jobs);
}

void print_queue(const Parsed& parsed, const Call& call, const std::vector<Job>& jobs,
                 const Viewed& viewed) {
  const std::vector<Column> columns = columns_of(parsed, call, viewed);
  std::string text;
  if (!parsed.has("noheader")) {
    if (parsed.has("long")) text += moment(viewed.now, "%a %b %d %H:%M:%S %Y") + "\n";
    text += title_line(columns) + "\n";
  }
  for (const Job& job : jobs) text += line_of(columns, job) + "\n";
  print_text(text);
}

int look_at_queue(const Call& call, const Parsed& parsed, EngineJobs& engine) {
  const Viewed viewed = viewed_by(call);
  std::vector<std::string> lists = parsed.words;
  const bool by_name = parsed.has("jobs");
  for (const auto& [name, value] : parsed.options) {
    if (name == "jobs" && !value.empty()) lists.push_back(value);
  }
  if (!by_name && !lists.empty())
    throw CommandFailed("squeue: error: Unrecognized option: " + lists.front() +
                        "\nTry \"squeue --help\" for more information");
  const NamedJobs named = named_jobs(lists, "squeue: error: Invalid job id: ");
  if (asks_for_files(parsed, call)) engine.tell_files();
  const Wanted wanted = wanted_by(parsed, call, viewed);
  std::vector<Job> jobs;
  if (!by_name || !named.ours.empty())
    jobs = jobs_in_queue(engine, parsed, named, by_name, wanted, viewed);
  std::erase_if(jobs, [&](const Job& job) { return !wanted.admits(job, viewed); });
  sort_jobs(jobs,
            said(parsed, "sort", call, "SQUEUE_SORT").empty()
                ? "P,t,-p"
                : said(parsed, "sort", call, "SQUEUE_SORT"),
            viewed);
  if (parsed.has("json")) {
    print_text(json::serialize(jobs_json(jobs, viewed)) + "\n");
    return 0;
  }
  if (parsed.has("steps")) {
    std::erase_if(jobs, [](const Job& job) { return job.state != JobState::Running; });
    if (!parsed.has("noheader"))
      print_text("         STEPID     NAME PARTITION     USER      TIME NODELIST\n");
    const auto columns = squeue_columns("%8j %.9P %.8u %.9M %N", viewed);
    for (const Job& job : jobs) {
      Job step = job;
      step.name = "   batch";
      std::string id = job_id(job) + ".batch";
      id.insert(0, std::string("         STEPID").size() - std::min<std::size_t>(15, id.size()),
                ' ');
      print_text(id + " " + line_of(columns, step) + "\n");
    }
    return 0;
  }
  print_queue(parsed, call, jobs, viewed);
  if (!parsed.has("real") && !shows_real(call) && named.real.empty()) return 0;
  return run_real(call, words_for_real(call, named)).value_or(0);
}

}  // namespace

int squeue(const Call& call, const Session& session) {
  const Parsed parsed = parse_options(squeue_options(), call.words);
  EngineJobs engine(session);
  int every = 0;
  if (const auto said_every = parsed.value("iterate"))
    std::from_chars(said_every->data(), said_every->data() + said_every->size(), every);
  for (;;) {
    const int code = look_at_queue(call, parsed, engine);
    if (every <= 0) return code;
    std::fflush(stdout);
    session.interrupt.pause(std::chrono::seconds(every));
  }
}

namespace {

double moment_said(const Parsed& parsed, const char* option, double otherwise, double now) {
  const auto text = parsed.value(option);
  if (!text) return otherwise;
  const auto time = parse_moment(*text, now);
  if (!time) throw CommandFailed("Invalid time specification (pos=0): " + *text);
  return *time;
}

std::vector<std::string> fields_of(const Parsed& parsed, const Call& call) {
  std::vector<std::string> fields = parsed.list("format");
  if (!fields.empty()) return fields;
  if (parsed.has("brief")) return split_at(kSacctBriefFields, ',');
  if (parsed.has("long")) return split_at(kSacctLongFields, ',');
  if (const std::string format = variable(call, "SACCT_FORMAT"); !format.empty())
    return split_at(format, ',');
  return split_at(kSacctFields, ',');
}

Wanted wanted_of_accounting(const Parsed& parsed, const Viewed& viewed) {
  Wanted wanted;
  if (parsed.has("state")) wanted.states = states_in(parsed.list("state"), "sacct");
  wanted.names = words_of(parsed, "name");
  wanted.partitions = words_of(parsed, "partition");
  wanted.accounts = words_of(parsed, "accounts");
  wanted.qos = words_of(parsed, "qos");
  wanted.nodes = words_of(parsed, "nodelist");
  Words users = words_of(parsed, "user");
  if (const Words more = words_of(parsed, "uid")) {
    if (!users) users.emplace();
    users->insert(more->begin(), more->end());
  }
  check_users(users, "sacct: error: Invalid user id: ");
  wanted.nobody = is_for_others(users, viewed);
  return wanted;
}

/// StdOut and its like and comments, which lines of tasks have where they are asked for.
bool names_file(const std::string& said) {
  const std::string field = lower_case(said);
  return field.starts_with("std") || field.starts_with("comm");
}

double midnight(double now) {
  return parse_moment("today", now).value_or(now);
}

struct Window {
  double start{0}, end{0};
};

/// sacct(1), --starttime: with states and no times, those that are in one now; with states and a
/// start alone, those that were in one then.
Window window_of(const Parsed& parsed, const Viewed& viewed) {
  const bool by_name = parsed.has("jobs");
  const bool by_state = parsed.has("state") && !by_name;
  const double usual = by_name ? 0 : by_state ? viewed.now : midnight(viewed.now);
  Window window;
  window.start = moment_said(parsed, "starttime", usual, viewed.now);
  window.end = moment_said(parsed, "endtime", by_state ? window.start : viewed.now, viewed.now);
  const bool is_turned = window.start > window.end && !by_name && parsed.has("starttime");
  if (is_turned)
    throw CommandFailed("sacct: error: Start time (" + moment(window.start, "") +
                        ") requested is after end time (" + moment(window.end, "") + ").");
  return window;
}

/// Whether one was in such a state within that time.
bool was_in(const Job& job, JobState state, const Window& window) {
  const bool ran = state == JobState::Running || state == JobState::Completing;
  if (has_ended(state))
    return job.state == state && job.ended && *job.ended >= window.start &&
           *job.ended <= window.end;
  // It waited until its start, or its end without one, from when it might have started; it ran until
  // its end.
  const auto begin = ran ? job.started : eligible_since(job);
  const auto until = ran || !job.started ? job.ended : job.started;
  return begin && *begin <= window.end && until.value_or(window.end) >= window.start;
}

std::vector<Job> accounted_jobs(EngineJobs& engine, const Parsed& parsed, const NamedJobs& named,
                                const Wanted& wanted, const Viewed& viewed) {
  const Window window = window_of(parsed, viewed);
  const bool by_name = parsed.has("jobs");
  std::vector<Job> jobs;
  if (by_name && named.ours.size() <= kNamesOneByOne) {
    jobs = find_named(engine, named.ours, true, std::nullopt);
  } else {
    jobs = jobs_of(engine.open_and_ended_since(std::max(window.start, 1.0)), true);
    if (by_name) std::erase_if(jobs, [&](const Job& job) { return !is_named_by(job, named.ours); });
  }
  std::erase_if(jobs, [&](const Job& job) {
    const auto is_in = [&](JobState state) { return was_in(job, state, window); };
    if (wanted.states) return std::none_of(wanted.states->begin(), wanted.states->end(), is_in);
    // What may not start yet is in no window.
    const auto since = by_name ? job.submitted : eligible_since(job);
    return (job.ended && *job.ended < window.start) || !since || *since > window.end;
  });
  if (by_name) cut_to(jobs, named.ours);
  return jobs;
}

bool is_step_wanted(const std::vector<JobName>& names, const Job& job, const std::string& step) {
  if (names.empty()) return true;
  return std::any_of(names.begin(), names.end(), [&](const JobName& name) {
    return is_named(job, name) && (name.step.empty() || name.step == step);
  });
}

std::string accounting_text(const SacctTable& table, const Job& job, bool has_steps,
                            const std::vector<JobName>& names) {
  std::string text;
  if (is_step_wanted(names, job, "")) text += table.line({job, ""});
  if (!has_steps || !job.started) return text;
  for (const char* step : {"batch", "extern"}) {
    if (is_step_wanted(names, job, step)) text += table.line({job, step});
  }
  return text;
}

}  // namespace

int sacct(const Call& call, const Session& session) {
  const Parsed parsed = parse_options(sacct_options(), call.words);
  if (parsed.has("helpformat")) {
    for (const std::string& name : sacct_field_names()) print_text(name + "\n");
    return 0;
  }
  Viewed viewed = viewed_by(call);
  if (const std::string unit = parsed.value("units").value_or(""); !unit.empty())
    viewed.unit = unit.front();
  const NamedJobs named = named_jobs(parsed.list("jobs"), "sacct: fatal: Bad job/step specified: ");
  EngineJobs engine(session);
  const std::vector<std::string> fields = fields_of(parsed, call);
  if (std::any_of(fields.begin(), fields.end(), names_file)) engine.tell_files();
  Wanted wanted = wanted_of_accounting(parsed, viewed);
  std::vector<Job> jobs;
  if (!parsed.has("jobs") || !named.ours.empty())
    jobs = accounted_jobs(engine, parsed, named, wanted, viewed);
  // Of states the time has decided.
  wanted.states.reset();
  std::erase_if(jobs, [&](const Job& job) { return !wanted.admits(job, viewed); });
  if (parsed.has("json")) {
    print_text(json::serialize(accounting_json(jobs, viewed)) + "\n");
    return 0;
  }
  SacctStyle style{parsed.has("parsable") || parsed.has("parsable2"), parsed.has("parsable"),
                   parsed.value("delimiter").value_or("|")};
  const SacctTable table(fields, style, viewed);
  std::string text = parsed.has("noheader") ? "" : table.titles();
  for (const Job& job : jobs)
    text += accounting_text(table, job, !parsed.has("allocations"), named.ours);
  print_text(text);
  if (!parsed.has("real") && !shows_real(call) && named.real.empty()) return 0;
  std::vector<std::string> words = words_for_real(call, named);
  words.front() = "--noheader";
  return run_real(call, words).value_or(0);
}

}  // namespace hpcbatch::slurm_commands
