// qdel, qhold, qrls, qrerun and qsig; and what is refused, with what to do.
#include "documents/task_values.hpp"
#include "pbs_commands/commands.hpp"
#include "pbs_commands/named.hpp"
#include "slurm_commands/commands.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::pbs_commands {
namespace {

namespace json = boost::json;
using slurm_commands::CommandFailed;
using slurm_commands::EngineJobs;
using slurm_commands::Job;
using slurm_commands::JobState;
using slurm_commands::Option;
using slurm_commands::parse_options;
using slurm_commands::Parsed;

constexpr auto kAlone = Option::Takes::Nothing;
constexpr auto kWithValue = Option::Takes::Value;
constexpr auto kLeftOut = slurm_commands::Use::Ignored;

constexpr Option kQdel[] = {
    {'p', "p", kAlone, kLeftOut},
    {'W', "W", kWithValue, kLeftOut},
    {'x', "x"},
    {0, "real"},
};
constexpr Option kQhold[] = {
    {'h', "h", kWithValue},
    {'t', "t", kWithValue, kLeftOut},
    {0, "real"},
};

constexpr Option kQrerun[] = {
    {'W', "W", kWithValue, kLeftOut},
    {0, "real"},
};

constexpr Option kQsig[] = {
    {'s', "s", kWithValue},
    {0, "real"},
};

/// What the engine is asked for.
struct Asked {
  std::string verb;
  json::object more;
  bool only_running{false};

  bool reaches(const Job& job) const {
    if (has_ended(job.state) || (only_running && job.state == JobState::Pending)) return false;
    return verb != "requeue" || job.is_requeued;
  }
};

std::vector<Job> meant_by(const PbsName& name, std::vector<Job> jobs) {
  std::erase_if(jobs, [&](const Job& job) { return !is_named(job, name.job); });
  cut_to(jobs, {name.job});
  return jobs;
}

/// One that is being deleted is no fault: two may have wished it.
bool are_over(const std::vector<Job>& jobs) {
  return !jobs.empty() && std::all_of(jobs.begin(), jobs.end(), [](const Job& job) {
    return has_ended(job.state) && job.state != JobState::Cancelled;
  });
}

void complain_of(const Call& call, const char* what, const PbsName& name) {
  std::fprintf(stderr, "%s: %s %s\n", call.command.c_str(), what, name.text.c_str());
}

/// Changes what is named and has not ended.
int change(const Call& call, const Session& session, const Parsed& parsed, Asked asked) {
  if (parsed.words.empty())
    throw CommandFailed(call.command + ": name a job: " + call.command + " [options] job ...", 2);
  // Not named_by's queues: of `@server`, and of an empty variable, it has none.
  for (const std::string& word : parsed.words) {
    if (word.empty() || std::isdigit(static_cast<unsigned char>(word.front())) == 0)
      throw CommandFailed(call.command + ": illegally formed job identifier: " + word);
  }
  const Named named = named_by(parsed.words);
  int code = named.real.empty() ? 0 : call_real(call, named);
  if (named.ours.empty()) return code;
  EngineJobs engine(session);
  const std::vector<Job> all = jobs_meant(engine, named.ours);
  json::array ids;
  for (const PbsName& name : named.ours) {
    const std::vector<Job> meant = meant_by(name, all);
    const std::size_t before = ids.size();
    for (const Job& job : meant) {
      if (!asked.reaches(job)) continue;
      for (const std::string& id : engine_ids(job)) ids.push_back(json::string(id));
    }
    if (meant.empty()) {
      code = complain_of_unknown(call.command, name.text);
    } else if (are_over(meant) && !parsed.has("x")) {
      code = kHasFinished;
      complain_of(call, "Job has finished", name);
    } else if (asked.verb == "requeue" && !meant.front().is_requeued) {
      code = kNotRerunnable;
      complain_of(call, "Job is not rerunnable", name);
    } else if (asked.only_running && ids.size() == before) {
      code = kBadState;
      complain_of(call, "Request invalid for state of job", name);
    }
  }
  if (ids.empty()) return code;
  asked.more["ids"] = std::move(ids);
  engine.client().post("/v1/tasks/" + asked.verb, asked.more);
  return code;
}

[[noreturn]] void refuse(const Call& call, const std::string& why) {
  throw CommandFailed(call.command + ": " + why +
                      "; for a job of the cluster: HPCBATCH_PBS_REAL=1 " + call.command + " ...");
}

}  // namespace

int qdel(const Call& call, const Session& session) {
  return change(call, session, parse_options({"qdel", kQdel}, call.words), {"cancel", {}});
}

int qhold(const Call& call, const Session& session) {
  return change(call, session, parse_options({"qhold", kQhold}, call.words), {"hold", {}});
}

int qrls(const Call& call, const Session& session) {
  return change(call, session, parse_options({"qrls", kQhold}, call.words), {"release", {}});
}

int qrerun(const Call& call, const Session& session) {
  return change(call, session, parse_options({"qrerun", kQrerun}, call.words),
                {"requeue", {}, true});
}

int qmove(const Call& call, const Session& /*session*/) {
  refuse(call, "hpcbatch moves no job to another queue; delete it with qdel, and submit it anew");
}

int qalter(const Call& call, const Session& /*session*/) {
  refuse(call,
         "hpcbatch changes no job that is submitted; delete it with qdel, and submit it anew");
}

int qsig(const Call& call, const Session& session) {
  const Parsed parsed = parse_options({"qsig", kQsig}, call.words);
  const std::string said = parsed.value("s").value_or("SIGTERM");
  if (said == "suspend" || said == "resume")
    refuse(call, "hpcbatch suspends no job; 'qhold' keeps one that waits from starting");
  if (parse_signal(said) == 0)
    throw CommandFailed("qsig: Unknown/illegal signal name", kUnknownSignal);
  return change(call, session, parsed, {"signal", {{"signal", said}}, true});
}

int pbsnodes(const Call& call, const Session& /*session*/) {
  refuse(call, "hpcbatch has no nodes of its own; 'hpcbatch sites' shows where tasks run");
}

}  // namespace hpcbatch::pbs_commands
