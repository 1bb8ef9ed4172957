// qstat: which jobs are meant, and in which form they are shown.
#include "pbs_commands/commands.hpp"
#include "pbs_commands/listing.hpp"
#include "pbs_commands/named.hpp"
#include "slurm_commands/commands.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include <unistd.h>

namespace hpcbatch::pbs_commands {
namespace {

namespace json = boost::json;
using slurm_commands::CommandFailed;
using slurm_commands::EngineJobs;
using slurm_commands::Option;
using slurm_commands::Parsed;
using slurm_commands::Viewed;

constexpr auto kNothing = Option::Takes::Nothing;
constexpr auto kValue = Option::Takes::Value;
constexpr auto kIgnored = slurm_commands::Use::Ignored;

constexpr Option kQstat[] = {
    {'1', "1", kNothing, kIgnored},
    {'a', "a"},
    {'B', "B"},
    {'D', "D", kValue},
    {'E', "E", kNothing, kIgnored},
    {'f', "f"},
    {'F', "F", kValue},
    {'G', "G", kNothing, kIgnored},
    {'H', "H"},
    {'i', "i"},
    {'J', "J"},
    {'M', "M", kNothing, kIgnored},
    {'n', "n"},
    {'p', "p", kNothing, kIgnored},
    {'Q', "Q"},
    {'r', "r"},
    {'s', "s"},
    {'t', "t"},
    {'T', "T", kNothing, kIgnored},
    {'u', "u", kValue},
    {'w', "w"},
    {'x', "x"},
    {0, "real"},
};
constexpr slurm_commands::OptionTable kQstatOptions{"qstat", kQstat};

bool is_over(const PbsJob& job) {
  return state_of(job) == 'F';
}

std::string own_host() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host.data();
}

/// What is asked for by name, in that order; its exit code where something is not there.
int take_named(const Parsed& parsed, const Named& named, const std::vector<PbsJob>& all,
               std::vector<PbsJob>& shown) {
  const bool history = parsed.has("x") || parsed.has("H");
  int code = 0;
  for (const PbsName& name : named.ours) {
    bool is_there = false;
    for (const PbsJob& job : all) {
      const bool is_of_it =
          parsed.has("t") && !name.job.indices && name.job.number == array_number_of(job.job);
      if (!is_of_it && !is_named(job, name)) continue;
      // Of an array by its number alone, the array.
      if (job.is_subjob() && !is_of_it && !name.job.indices &&
          name.job.number == array_number_of(job.job))
        continue;
      is_there = true;
      if (history || !(job.is_subjob() ? job.array_is_over : is_over(job))) {
        shown.push_back(job);
        continue;
      }
      code = kHasFinished;
      std::fprintf(
          stderr, "qstat: %s Job has finished, use -x or -H to obtain historical job information\n",
          name.text.c_str());
      break;
    }
    if (!is_there) code = complain_of_unknown("qstat", name.text);
  }
  return code;
}

bool is_wanted(const Parsed& parsed, const Named& named, const PbsJob& job, const Viewed& viewed) {
  const char state = state_of(job);
  if (parsed.has("H") && state != 'F') return false;
  if (parsed.has("r") && state != 'R' && state != 'B') return false;
  if (parsed.has("i") && state != 'Q' && state != 'H') return false;
  if (parsed.has("J") && !job.is_array) return false;
  const std::vector<std::string> users = parsed.list("u");
  const auto is_own = [&](const std::string& user) {
    return is_own_user(user.substr(0, user.find('@')), viewed);
  };
  if (!users.empty() && std::none_of(users.begin(), users.end(), is_own)) return false;
  return named.queues.empty() || std::find(named.queues.begin(), named.queues.end(),
                                           queue_of(job, viewed)) != named.queues.end();
}

json::object envelope(const Viewed& viewed) {
  return {{"timestamp", static_cast<std::int64_t>(viewed.now)},
          {"pbs_version", "23.06.06"},
          {"pbs_server", kServer}};
}

void print_full(const Parsed& parsed, const std::vector<PbsJob>& jobs, const Viewed& viewed) {
  const std::string form = parsed.value("F").value_or("default"), host = own_host();
  if (form == "json" || form == "JSON") {
    json::object all;
    for (const PbsJob& job : jobs) all[id_of(job)] = attributes_of(job, viewed, host);
    json::object answer = envelope(viewed);
    if (!jobs.empty()) answer["Jobs"] = std::move(all);
    slurm_commands::print_text(json_as_text(answer));
    return;
  }
  const bool is_dsv = form == "dsv" || form == "DSV";
  if (!is_dsv && form != "default")
    throw CommandFailed("qstat: -F takes json, dsv or default, not '" + form + "'", 2);
  const std::string delimiter = parsed.value("D").value_or("|");
  for (const PbsJob& job : jobs) {
    const json::object attributes = attributes_of(job, viewed, host);
    slurm_commands::print_text(is_dsv
                                   ? attributes_as_dsv(id_of(job), attributes, delimiter)
                                   : attributes_as_text(id_of(job), attributes, parsed.has("w")));
  }
}

std::string state_counts(const std::vector<PbsJob>& jobs) {
  std::uint64_t queued = 0, held = 0, running = 0, exiting = 0;
  for (const PbsJob& job : jobs) {
    const char state = state_of(job);
    queued += state == 'Q' ? 1 : job.queued;
    held += state == 'H' ? 1 : job.held;
    running += state == 'R' ? 1 : job.running;
    exiting += state == 'E' ? 1 : job.exiting;
  }
  return "Transit:0 Queued:" + std::to_string(queued) + " Held:" + std::to_string(held) +
         " Waiting:0 Running:" + std::to_string(running) + " Exiting:" + std::to_string(exiting) +
         " Begun:0 ";
}

/// `qstat -B` and `-Q`.
int show_places(const Parsed& parsed, EngineJobs& engine, const Viewed& viewed) {
  const std::vector<PbsJob> jobs =
      pbs_jobs_of(slurm_commands::jobs_of(engine.open_jobs(), true), false);
  if (!parsed.has("f")) {
    slurm_commands::print_text(parsed.has("B") ? server_table(jobs) : queue_table(jobs, viewed));
    return 0;
  }
  const json::object server{{"server_state", "Active"},
                            {"scheduling", "True"},
                            {"total_jobs", jobs.size()},
                            {"state_count", state_counts(jobs)},
                            {"default_queue", viewed.default_partition},
                            {"job_history_enable", "True"},
                            {"pbs_version", "23.06.06"}};
  const json::object queue{{"queue_type", "Execution"},
                           {"total_jobs", jobs.size()},
                           {"state_count", state_counts(jobs)},
                           {"enabled", "True"},
                           {"started", "True"}};
  const bool is_server = parsed.has("B");
  const std::string name = is_server ? std::string(kServer) : viewed.default_partition;
  const json::object& place = is_server ? server : queue;
  if (parsed.value("F").value_or("") == "json") {
    json::object answer = envelope(viewed);
    answer[is_server ? "Server" : "Queue"] = json::object{{name, place}};
    slurm_commands::print_text(json_as_text(answer));
    return 0;
  }
  std::string text = attributes_as_text(name, place, parsed.has("w"));
  text.replace(0, std::string_view("Job Id").size(), is_server ? "Server" : "Queue");
  slurm_commands::print_text(text);
  return 0;
}

bool is_long(const Parsed& parsed) {
  constexpr std::array<std::string_view, 7> kLong{"a", "i", "n", "r", "s", "u", "H"};
  return std::any_of(kLong.begin(), kLong.end(),
                     [&](std::string_view name) { return parsed.has(name); });
}

}  // namespace

int qstat(const Call& call, const Session& session) {
  const Parsed parsed = parse_options(kQstatOptions, call.words);
  const Viewed viewed = slurm_commands::viewed_by(call);
  const Named named = named_by(parsed.words);
  if (named.ours.empty() && !named.real.empty()) return call_real(call, named);
  EngineJobs engine(session);
  if (parsed.has("B") || parsed.has("Q")) return show_places(parsed, engine, viewed);
  const bool history = parsed.has("x") || parsed.has("H");
  std::vector<PbsJob> shown;
  int code = 0;
  if (named.ours.empty()) {
    shown = pbs_jobs_of(slurm_commands::jobs_of(
                            history ? engine.open_and_ended_since(1) : engine.open_jobs(), true),
                        parsed.has("t"));
  } else {
    code = take_named(parsed, named, pbs_jobs_of(jobs_meant(engine, named.ours), true), shown);
  }
  std::erase_if(shown, [&](const PbsJob& job) { return !is_wanted(parsed, named, job, viewed); });
  if (parsed.has("f"))
    print_full(parsed, shown, viewed);
  else
    slurm_commands::print_text(is_long(parsed) ? long_table(shown, viewed)
                                               : short_table(shown, viewed));
  const bool shows_real =
      parsed.has("real") || slurm_commands::shows_real(call) || !named.real.empty();
  return shows_real ? std::max(code, call_real(call, named)) : code;
}

}  // namespace hpcbatch::pbs_commands
