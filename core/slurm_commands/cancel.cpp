// scancel: which jobs are meant, and their end or what they are sent.
#include "documents/task_values.hpp"
#include "slurm_commands/commands.hpp"
#include "slurm_commands/options.hpp"
#include "slurm_commands/wanted.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <set>
#include <string_view>
#include <utility>

namespace hpcbatch::slurm_commands {

namespace json = boost::json;

namespace {

/// What is asked of jobs: SIGKILL cancels them, and others are sent to what runs, to steps alone where
/// nothing else is said (scancel(1), --signal, --batch and --full).
struct CancelAsked {
  std::string signal;  ///< empty: to be cancelled
  const char* to{"steps"};

  /// A job that waits hears no signal, which is said.
  bool may_be_told(const Job& job) const {
    if (signal.empty() || job.state != JobState::Pending) return true;
    std::fprintf(stderr,
                 "scancel: error: Kill job error on job id %s: Job can not be altered now, try "
                 "again later\n",
                 job_id(job).c_str());
    return false;
  }
  void tell(const Job& job) const {
    std::fprintf(stderr, "scancel: %s job %s\n", signal.empty() ? "Terminating" : "Signalling",
                 job_id(job).c_str());
  }
};

CancelAsked cancel_asked_by(const Parsed& parsed) {
  CancelAsked asked;
  const auto said = parsed.value("signal");
  if (!said) return asked;
  const int number = parse_signal(*said);
  if (number == 0) throw CommandFailed("scancel: error: Unknown job signal: " + *said);
  if (parsed.has("full")) asked.to = "all";
  if (parsed.has("batch")) asked.to = "first";
  if (number != SIGKILL || parsed.has("batch")) asked.signal = std::to_string(number);
  return asked;
}

std::vector<Job> jobs_to_cancel(EngineJobs& engine, const Parsed& parsed, const NamedJobs& named,
                                const Viewed& viewed, bool& missing) {
  Wanted wanted;
  // scancel(1) takes one name.
  for (const char* option : {"jobname", "name"}) {
    if (const auto name = parsed.value(option))
      wanted.names = std::set<std::string, std::less<>>{*name};
  }
  wanted.partitions = words_of(parsed, "partition");
  wanted.accounts = words_of(parsed, "account");
  wanted.qos = words_of(parsed, "qos");
  if (const auto list = parsed.value("nodelist")) {
    const std::vector<std::string> hosts = expand_hosts(*list);
    wanted.nodes = std::set<std::string, std::less<>>{hosts.begin(), hosts.end()};
  }
  if (parsed.has("user") && parsed.list("user").empty())
    throw CommandFailed("scancel: error: Invalid user name: ");
  check_users(words_of(parsed, "user"), "scancel: error: Invalid user name: ");
  if (const auto state = parsed.value("state")) {
    if (!is_slurm_state(*state))
      throw CommandFailed("Invalid job state specified: " + *state +
                          "\nValid job states are PENDING, RUNNING, and SUSPENDED");
    wanted.states = states_in({*state}, "scancel");
  }
  wanted.nobody = !parsed.has("me") && is_for_others(words_of(parsed, "user"), viewed);
  std::vector<Job> jobs;
  if (!named.ours.empty()) {
    for (const JobName& name : named.ours) {
      if (!name.step.empty())
        throw CommandFailed("scancel: error: steps cannot be ended by themselves: name the job " +
                            std::to_string(name.number) +
                            ", or tell all its steps to end with --signal=TERM");
      std::vector<Job> found = find_named(engine, {name}, true, viewed.now);
      // One that has ended is none that is missing.
      if (found.empty()) found = find_named(engine, {name}, true, std::nullopt);
      cut_to(found, {name});
      if (found.empty() && !parsed.has("quiet")) {
        std::fprintf(stderr,
                     "scancel: error: Kill job error on job id %s: Invalid job id specified\n",
                     to_string(name).c_str());
        missing = true;
      }
      jobs.insert(jobs.end(), found.begin(), found.end());
    }
  } else {
    jobs = jobs_of(engine.open_jobs(), true);
  }
  std::erase_if(
      jobs, [&](const Job& job) { return has_ended(job.state) || !wanted.admits(job, viewed); });
  return jobs;
}

/// The exit code.
int cancel_real(const Call& call, const NamedJobs& named) {
  std::vector<std::string> words;
  for (const std::string& word : call.words) {
    const auto name = parse_job_name(word);
    if (!name || !is_ours(*name)) words.push_back(word);
  }
  if (const auto code = run_real(call, words)) return *code;
  for (const std::string& one : named.real)
    std::fprintf(stderr, "scancel: error: Kill job error on job id %s: Invalid job id specified\n",
                 one.c_str());
  return 1;
}

/// Asks on the terminal, where that is wanted; the end of the input is a no to this one and all others.
bool is_confirmed(const Parsed& parsed, const Job& job, const Viewed& viewed) {
  if (!parsed.has("interactive")) return true;
  std::printf("Cancel job_id=%s name=%s partition=%s [y/n]? ", job_id(job).c_str(),
              job.name.c_str(),
              (job.partition.empty() ? viewed.default_partition : job.partition).c_str());
  std::fflush(stdout);
  char answer[64];
  return std::fgets(answer, sizeof answer, stdin) != nullptr &&
         (answer[0] == 'y' || answer[0] == 'Y');
}

bool chooses_jobs(const Parsed& parsed) {
  constexpr std::array<std::string_view, 9> kChoices{
      "user", "me", "jobname", "name", "nodelist", "state", "partition", "account", "qos"};
  return std::any_of(kChoices.begin(), kChoices.end(),
                     [&](std::string_view name) { return parsed.has(name); });
}

}  // namespace

int scancel(const Call& call, const Session& session) {
  const Parsed parsed = parse_options(scancel_options(), call.words);
  const Viewed viewed = viewed_by(call);
  for (const std::string& word : parsed.words) {
    // As of a variable that is not set.
    if (split_job_names(word).empty())
      throw CommandFailed("scancel: error: Invalid job id " + word);
  }
  const NamedJobs named = named_jobs(parsed.words, "scancel: error: Invalid job id ");
  const int code = named.real.empty() ? 0 : cancel_real(call, named);
  if (!named.real.empty() && named.ours.empty()) return code;
  if (named.ours.empty() && !chooses_jobs(parsed))
    throw CommandFailed("scancel: error: No job identification provided");
  const CancelAsked asked = cancel_asked_by(parsed);
  EngineJobs engine(session);
  bool missing = false;
  json::array ids;
  for (const Job& job : jobs_to_cancel(engine, parsed, named, viewed, missing)) {
    if (!is_confirmed(parsed, job, viewed)) continue;
    if (!asked.may_be_told(job)) {
      missing = true;
      continue;
    }
    if (parsed.has("verbose")) asked.tell(job);
    for (const std::string& id : engine_ids(job)) ids.push_back(json::string(id));
  }
  if (ids.empty()) return missing ? 1 : code;
  if (asked.signal.empty())
    engine.client().post("/v1/tasks/cancel", {{"ids", std::move(ids)}});
  else
    engine.client().post("/v1/tasks/signal",
                         {{"ids", std::move(ids)}, {"signal", asked.signal}, {"to", asked.to}});
  return missing ? 1 : code;
}

}  // namespace hpcbatch::slurm_commands
