// scontrol and sinfo: what changes jobs, and what there is of the site's places.
#include "cli/show/values.hpp"
#include "slurm_commands/commands.hpp"
#include "slurm_commands/options.hpp"
#include "slurm_commands/reach.hpp"
#include "slurm_commands/times.hpp"

#include <hpcbatch/text.hpp>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

namespace hpcbatch::slurm_commands {
namespace {

namespace json = boost::json;

/// A partition as the sites' shapes make it: the same name of several is one.
struct Place {
  std::string name;
  bool is_default{false};
  double cpus{0};  ///< of the largest node
  std::uint64_t memory{0};
  std::string gpus;
  std::optional<double> walltime;
  std::uint64_t nodes{0};
  std::uint64_t running{0};
};

std::string gpus_of(const json::object& shape) {
  const json::object* gpus = object_at(shape, "gpus");
  std::string text;
  if (gpus == nullptr) return text;
  for (const auto& [kind, count] : *gpus)
    text += (text.empty() ? "gpu:" : ",gpu:") +
            (kind == "any" ? std::string() : std::string(kind) + ":") + text_at(*gpus, kind);
  return text;
}

void add_shape(Place& place, const json::object& shape) {
  place.cpus = std::max(place.cpus, number_at(shape, "cpus"));
  place.memory = std::max(place.memory, static_cast<std::uint64_t>(number_at(shape, "memory")));
  if (place.gpus.empty()) place.gpus = gpus_of(shape);
  if (shape.contains("walltime"))
    place.walltime = std::max(place.walltime.value_or(0), number_at(shape, "walltime"));
  const auto most = static_cast<std::uint64_t>(number_at(shape, "max_running"));
  place.nodes += std::max<std::uint64_t>(1, most);
  place.running += static_cast<std::uint64_t>(number_at(shape, "running"));
}

/// The one that tasks are in which name none comes first.
std::vector<Place> places_of(EngineJobs& engine, const Viewed& viewed) {
  const json::object answer = engine.client().get("/v1/sites");
  Place all{viewed.default_partition, true};
  std::map<std::string, Place> named;
  const json::array* sites = array_at(answer, "sites");
  for (std::size_t i = 0; sites != nullptr && i < sites->size(); ++i) {
    const json::array* shapes = array_at(sites->at(i).as_object(), "shapes");
    for (std::size_t j = 0; shapes != nullptr && j < shapes->size(); ++j) {
      const json::object& shape = shapes->at(j).as_object();
      add_shape(all, shape);
      const std::string partition = text_at(shape, "partition");
      if (partition.empty()) continue;
      Place& place = named[partition];
      place.name = partition;
      add_shape(place, shape);
    }
  }
  std::vector<Place> places{all};
  for (auto& [name, place] : named) places.push_back(std::move(place));
  return places;
}

std::uint64_t cpus_of_node(const Place& place) {
  return static_cast<std::uint64_t>(std::floor(place.cpus));
}

std::uint64_t used_nodes(const Place& place) {
  return std::min(place.running, place.nodes);
}

std::string nodes_in_use(const Place& place) {
  return std::to_string(used_nodes(place)) + "/" + std::to_string(place.nodes - used_nodes(place));
}

std::string cpus_in_use(const Place& place) {
  const std::uint64_t all = cpus_of_node(place) * place.nodes;
  const std::uint64_t used = cpus_of_node(place) * used_nodes(place);
  return std::to_string(used) + "/" + std::to_string(all - used) + "/0/" + std::to_string(all);
}

std::string longest(const Place& place) {
  return place.walltime ? short_duration(*place.walltime) : "infinite";
}

/// A value of sinfo; `fixed` is what it always is here.
struct PlaceField {
  char letter;
  std::string_view title;
  std::string (*value)(const Place&);
  std::string_view fixed{};
};

constexpr PlaceField kPlaceFields[] = {
    {'P', "PARTITION",
     [](const Place& place) { return place.name + (place.is_default ? "*" : ""); }},
    {'R', "PARTITION", [](const Place& place) { return place.name; }},
    {'N', "NODELIST", [](const Place& place) { return place.name; }},
    {'n', "HOSTNAMES", [](const Place& place) { return place.name; }},
    {'l', "TIMELIMIT", longest},
    {'L', "DEFAULTTIME", longest},
    {'D', "NODES", [](const Place& place) { return std::to_string(place.nodes); }},
    {'A', "NODES(A/I)", nodes_in_use},
    {'F', "NODES(A/I/O/T)",
     [](const Place& place) { return nodes_in_use(place) + "/0/" + std::to_string(place.nodes); }},
    {'c', "CPUS", [](const Place& place) { return std::to_string(cpus_of_node(place)); }},
    {'C', "CPUS(A/I/O/T)", cpus_in_use},
    {'z', "S:C:T",
     [](const Place& place) { return "1:" + std::to_string(cpus_of_node(place)) + ":1"; }},
    {'m', "MEMORY", [](const Place& place) { return std::to_string(place.memory >> 20U); }},
    {'e', "FREE_MEM", [](const Place& place) { return std::to_string(place.memory >> 20U); }},
    {'G', "GRES", [](const Place& place) { return place.gpus.empty() ? "(null)" : place.gpus; }},
    {'a', "AVAIL", nullptr, "up"},
    {'t', "STATE", nullptr, "idle"},
    {'T', "STATE", nullptr, "idle"},
    {'d', "TMP_DISK", nullptr, "0"},
    {'f', "AVAIL_FEATURES", nullptr, "(null)"},
    {'b', "ACTIVE_FEATURES", nullptr, "(null)"},
    {'g', "GROUPS", nullptr, "all"},
    {'h', "OVERSUBSCRIBE", nullptr, "NO"},
    {'r', "ROOT", nullptr, "no"},
    {'s', "JOB_SIZE", nullptr, "1-infinite"},
    {'w', "WEIGHT", nullptr, "1"},
    {'p', "PRIO_TIER", nullptr, "1"},
    {'I', "PRIO_JOB_FACTOR", nullptr, "1"},
    {'E', "REASON", nullptr, "none"},
    {'B', "MAX_CPUS_PER_NODE", nullptr, "UNLIMITED"},
    {'i', "RESERVATION", nullptr, ""},
    {'M', "PREEMPT_MODE", nullptr, "OFF"},
    {'o', "NODE_ADDR", [](const Place& place) { return place.name; }},
    {'O', "CPU_LOAD", nullptr, "N/A"},
    {'u', "USER", nullptr, "Unknown"},
    {'U', "USER", nullptr, "Unknown"},
    {'v', "VERSION", nullptr, "23.11.0-hpcbatch"},
    {'V', "CLUSTER", nullptr, "hpcbatch"},
    {'H', "TIMESTAMP", nullptr, "Unknown"},
    {'X', "SOCKETS", nullptr, "1"},
    {'Y', "CORES", nullptr, "1"},
    {'Z', "THREADS", nullptr, "1"}};

const PlaceField& place_field(char letter) {
  const auto* const at =
      std::find_if(std::begin(kPlaceFields), std::end(kPlaceFields),
                   [&](const PlaceField& field) { return field.letter == letter; });
  if (at == std::end(kPlaceFields))
    throw CommandFailed("sinfo: error: Invalid node format specification: " +
                        std::string(1, letter));
  return *at;
}

std::string place_value(char letter, const Place& place) {
  const PlaceField& field = place_field(letter);
  return field.value != nullptr ? field.value(place) : std::string(field.fixed);
}

std::string place_title(char letter) {
  return std::string(place_field(letter).title);
}

/// `%9P %.5a`, each with what `text_of` says.
template <class TextOf>
std::string filled(std::string_view format, const TextOf& text_of) {
  std::string line;
  for (std::size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      line += format[at++];
      continue;
    }
    const bool right = ++at < format.size() && format[at] == '.';
    if (right) ++at;
    std::size_t width = 0;
    for (; at < format.size() && std::isdigit(static_cast<unsigned char>(format[at])) != 0; ++at)
      width = std::min<std::size_t>(width * 10 + static_cast<std::size_t>(format[at] - '0'), 4096);
    if (at == format.size()) break;
    std::string text = text_of(format[at++]);
    if (width != 0) {
      text.resize(std::min(text.size(), width));
      text.insert(right ? 0 : text.size(), width - text.size(), ' ');
    }
    line += text;
  }
  return line;
}

/// `PartitionName:20,CPUs` as a format of letters.
std::string letters_of(const std::string& format) {
  static const std::map<std::string, char> kNames{
      {"partition", 'P'}, {"partitionname", 'R'}, {"available", 'a'},    {"time", 'l'},
      {"nodes", 'D'},     {"nodeaiot", 'F'},      {"statecompact", 't'}, {"statelong", 'T'},
      {"state", 'T'},     {"nodelist", 'N'},      {"nodehost", 'n'},     {"cpus", 'c'},
      {"cpusstate", 'C'}, {"memory", 'm'},        {"freemem", 'e'},      {"gres", 'G'},
      {"features", 'f'},  {"disk", 'd'},          {"groups", 'g'},       {"sct", 'z'}};
  std::string letters;
  for (const std::string& word : split_at(format, ',')) {
    const std::size_t colon = std::min(word.find(':'), word.size());
    const std::string name = lower_case(word.substr(0, colon));
    const auto at = kNames.find(name);
    if (at == kNames.end())
      throw CommandFailed("sinfo: error: Invalid node format specification: " + name);
    const std::string width = colon < word.size() ? word.substr(colon + 1) : "20";
    letters += "%" + width + at->second;
  }
  return letters;
}

/// Whether nodes that are idle, as all of ours are told to be, are among those states.
bool admits_idle(const std::vector<std::string>& states) {
  static const std::set<std::string, std::less<>> kStates{
      "alloc",    "allocated", "blocked",      "comp",          "completing",  "down",
      "drain",    "drained",   "drng",         "draining",      "fail",        "failing",
      "failg",    "future",    "futr",         "idle",          "inval",       "maint",
      "mix",      "mixed",     "npc",          "perfctrs",      "planned",     "plnd",
      "pow_dn",   "pow_up",    "powered_down", "powering_down", "powering_up", "power_down",
      "power_up", "reboot",    "reserved",     "resv",          "no_respond",  "unk",
      "unknown",  "error",     "all"};
  bool admits = states.empty();
  for (const std::string& said : states) {
    const std::string state = lower_case(said);
    if (!kStates.contains(state))
      throw CommandFailed(std::string("sinfo: error: Bad state string: ").append(state));
    admits = admits || state == "idle" || state == "all";
  }
  return admits;
}

std::set<std::string> nodes_said(const Parsed& parsed) {
  std::set<std::string> nodes;
  const std::string list = parsed.value("nodes").value_or("");
  for (const std::string& host : expand_hosts(list)) nodes.insert(host);
  return nodes;
}

}  // namespace

int sinfo(const Call& call, const Session& session) {
  const Parsed parsed = parse_options(sinfo_options(), call.words);
  const Viewed viewed = viewed_by(call);
  EngineJobs engine(session);
  // Nodes are there for none.
  if (parsed.has("list-reasons")) {
    if (!parsed.has("noheader"))
      print_text("REASON               USER      TIMESTAMP           NODELIST\n");
    return 0;
  }
  std::vector<Place> places = places_of(engine, viewed);
  const std::vector<std::string> wanted = parsed.list("partition");
  const std::set<std::string> nodes = nodes_said(parsed);
  const bool any = admits_idle(parsed.list("states"));
  std::erase_if(places, [&](const Place& place) {
    if (!any || (!nodes.empty() && !nodes.contains(place.name))) return true;
    return !wanted.empty() && std::find(wanted.begin(), wanted.end(), place.name) == wanted.end();
  });
  std::string format = "%9P %.5a %.10l %.6D %.6t %N";
  if (parsed.has("summarize")) format = "%9P %.5a %.10l %.16F %N";
  if (parsed.has("Node")) format = "%10N %.6D %.9P %6t ";
  if (parsed.has("Node") && parsed.has("long"))
    format = "%10N %.6D %.9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E";
  else if (parsed.has("long"))
    format = "%9P %.5a %.10l %.8s %.4r %.8h %.10g %.6D %.11T %N";
  if (const auto letters = parsed.value("format")) format = *letters;
  if (const auto names = parsed.value("Format")) format = letters_of(*names);
  std::string text;
  if (parsed.has("long") && !parsed.has("noheader"))
    text += moment(viewed.now, "%a %b %d %H:%M:%S %Y") + "\n";
  if (!parsed.has("noheader")) text += filled(format, place_title) + "\n";
  for (const Place& place : places)
    text += filled(format, [&](char letter) { return place_value(letter, place); }) + "\n";
  print_text(text);
  return 0;
}

namespace {

[[noreturn]] void unknown_id() {
  throw CommandFailed("slurm_load_jobs error: Invalid job id specified");
}

/// Jobs that are named, tasks of one array together; those of the cluster stay with the real command.
std::vector<Job> found_jobs(EngineJobs& engine, const std::vector<JobName>& names) {
  std::vector<Job> found;
  for (const JobName& name : names) {
    std::vector<Job> jobs = jobs_of(engine.lines_of(name, std::nullopt), true);
    std::erase_if(jobs, [&](const Job& job) { return !is_named(job, name); });
    cut_to(jobs, {name});
    found.insert(found.end(), jobs.begin(), jobs.end());
  }
  return found;
}

/// `12`, `JobId=12`, `12,13`.
NamedJobs jobs_said(const std::vector<std::string>& words, const std::string& complaint) {
  std::vector<std::string> lists;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    lists.push_back(equals == std::string::npos ? word : word.substr(equals + 1));
  }
  for (const std::string& list : lists) {
    const std::vector<std::string> names = split_job_names(list);
    const auto is_job = [](const std::string& name) {
      const auto parsed = parse_job_name(name);
      return parsed && parsed->step.empty();
    };
    // An empty variable's, say: to change nothing would look as if it had been done.
    if (names.empty() || !std::all_of(names.begin(), names.end(), is_job))
      throw CommandFailed(complaint);
  }
  return named_jobs(lists, complaint);
}

int show_jobs(const Call& call, const Parsed& parsed, const std::vector<std::string>& words,
              EngineJobs& engine) {
  const Viewed viewed = viewed_by(call);
  const NamedJobs named = jobs_said(words, "scontrol_print_job error: Invalid job id specified");
  engine.tell_files();
  if (named.ours.empty() && !named.real.empty()) {
    if (const auto code = run_real(call, call.words)) return *code;
    unknown_id();
  }
  const std::vector<Job> jobs =
      words.empty() ? jobs_of(engine.open_and_ended_since(viewed.now - kShownAfterEnd), true)
                    : found_jobs(engine, named.ours);
  if (jobs.empty() && named.ours.size() == 1 && named.ours.front().indices) {
    print_text("Job " + words.front() + " not found\n");
    return 1;
  }
  if (jobs.empty() && !words.empty()) unknown_id();
  if (parsed.has("json")) {
    print_text(json::serialize(jobs_json(jobs, viewed)) + "\n");
    return 0;
  }
  if (jobs.empty()) print_text("No jobs in the system\n");
  for (const Job& job : jobs) print_text(job_details(job, viewed, parsed.has("oneliner")));
  return 0;
}

std::string as_text(const std::string& key, const std::string& value) {
  return key + "=" + value;
}

int show_places(const Call& call, const Parsed& parsed, EngineJobs& engine, bool are_nodes) {
  const std::string wanted = parsed.words.size() > 2 ? parsed.words[2] : "";
  bool any = false;
  for (const Place& place : places_of(engine, viewed_by(call))) {
    if (!wanted.empty() && wanted != place.name) continue;
    any = true;
    const std::string separator = parsed.has("oneliner") ? " " : "\n   ";
    const std::string cpus = place_value('c', place), memory = place_value('m', place);
    std::string text = as_text(are_nodes ? "NodeName" : "PartitionName", place.name) + separator;
    text += are_nodes ? as_text("CPUTot", cpus) + " " + as_text("RealMemory", memory) + separator +
                            "State=IDLE " + as_text("Gres", place_value('G', place))
                      : std::string("Default=") + (place.is_default ? "YES" : "NO") + separator +
                            as_text("MaxTime",
                                    place.walltime ? long_duration(*place.walltime) : "UNLIMITED") +
                            " State=UP " + as_text("TotalCPUs", cpus) + " " +
                            as_text("TotalNodes", place_value('D', place)) + " " +
                            as_text("MaxMemPerNode", memory);
    print_text(text + (parsed.has("oneliner") ? "\n" : "\n\n"));
  }
  if (!any) throw CommandFailed((are_nodes ? "Node " : "Partition ") + wanted + " not found");
  return 0;
}

int show(const Call& call, const Parsed& parsed, EngineJobs& engine) {
  if (parsed.words.size() < 2) throw CommandFailed("too few arguments for keyword:show");
  // `show job=12` is `show job 12`.
  const std::size_t equals = std::min(parsed.words[1].find('='), parsed.words[1].size());
  std::string what = lower_case(parsed.words[1].substr(0, equals));
  std::vector<std::string> rest(parsed.words.begin() + 2, parsed.words.end());
  if (equals < parsed.words[1].size())
    rest.insert(rest.begin(), parsed.words[1].substr(equals + 1));
  if (rest.size() > 1) throw CommandFailed("too many arguments for keyword:show");
  const auto is = [&](std::string_view word) { return !what.empty() && word.starts_with(what); };
  if (what == "hostlistsorted" || what == "hostlist") {
    std::vector<std::string> hosts = expand_hosts(rest.empty() ? "" : rest.front());
    if (what == "hostlistsorted") std::sort(hosts.begin(), hosts.end());
    print_text(host_list(hosts) + "\n");
    return 0;
  }
  if (is("hostnames")) {
    const char* list = std::getenv("SLURM_JOB_NODELIST");
    const std::string said = !rest.empty() ? rest.front() : (list ? list : "");
    for (const std::string& host : expand_hosts(said)) print_text(host + "\n");
    return 0;
  }
  if (is("jobs") || what == "jobid") return show_jobs(call, parsed, rest, engine);
  if (is("partitions")) return show_places(call, parsed, engine, false);
  if (is("nodes")) return show_places(call, parsed, engine, true);
  if (is("config")) {
    print_text(
        "Configuration data as of now\n"
        "ClusterName             = hpcbatch\n"
        "MaxArraySize            = 1000001\n"
        "MaxJobCount             = 1000000\n"
        "MinJobAge               = 300 sec\n"
        "SelectType              = select/cons_tres\n"
        "SLURM_VERSION           = 23.11.0\n");
    return 0;
  }
  throw CommandFailed("invalid entity:" + what +
                      " for keyword:show \nscontrol: error: hpcbatch shows job, partition, node, "
                      "config, hostnames and hostlist");
}

/// Why it cannot be changed so, in Slurm's words; empty: it can.
std::string why_not(const Job& job, const std::string& verb) {
  // Before it could be held, it would begin anew.
  if (has_ended(job.state) && verb != "retry") return kIsOver;
  if (verb == "hold" || verb == "release") return "";
  if (job.state == JobState::Pending) return "Job is pending execution";
  return job.is_requeued ? "" : "Requested operation is presently disabled";
}

/// What the engine is asked to do with it; empty: nothing, as it ends just now.
std::string asked_of(const Job& job, const std::string& verb) {
  if (verb == "hold" || verb == "release" || has_ended(job.state)) return verb;
  // What runs ends and begins anew, as requeue(1) has it.
  return job.state == JobState::Running ? "requeue" : "";
}

/// Whether there is anything to complain of.
bool complain_of(const Reach& reach, const std::string& verb) {
  if (!complain_of(reach)) return false;
  const bool is_suspend = verb == "hold" || verb == "release";
  if (is_suspend && !reach.is_array)
    std::fprintf(stderr, "slurm_suspend error: %s\n", reach.refused.begin()->first.c_str());
  return true;
}

/// What has ended is wanted where it is told of, or may begin anew: a large array has much of it.
std::vector<Job> jobs_to_change(EngineJobs& engine, const JobName& name, const std::string& verb) {
  if (!name.indices && (verb == "hold" || verb == "release")) {
    std::vector<Job> open = jobs_of(engine.lines_of(name, now_in_seconds()), false);
    if (!open.empty()) return open;
  }
  return jobs_of(engine.lines_of(name, std::nullopt), false);
}

int change(const Call& call, const std::string& verb, const std::vector<std::string>& words,
           EngineJobs& engine) {
  if (words.empty()) throw CommandFailed("too few arguments for keyword:" + call.words.front());
  const NamedJobs named = jobs_said(words, "Invalid job id specified");
  if (!named.real.empty() && named.ours.empty()) {
    if (const auto code = run_real(call, call.words)) return *code;
  }
  int code = 0;
  for (const std::string& job : named.real) {
    std::fprintf(stderr, "Invalid job id specified for job %s\n", job.c_str());
    code = 1;
  }
  std::map<std::string, json::array> ids;
  for (const JobName& name : named.ours) {
    const Reach reach = reach_of(jobs_to_change(engine, name, verb), name,
                                 [&](const Job& job) { return why_not(job, verb); });
    if (complain_of(reach, verb)) code = 1;
    for (const Job& job : reach.jobs) {
      const std::string asked = asked_of(job, verb);
      if (asked.empty()) continue;
      for (const std::string& id : engine_ids(job)) {
        ids[asked].push_back(json::string(id));
        if (verb == "requeuehold") ids["hold"].push_back(json::string(id));
      }
    }
  }
  // In the order of these words: what is requeued is held before it could begin anew.
  for (auto& [asked, its] : ids)
    engine.client().post("/v1/tasks/" + asked, {{"ids", std::move(its)}});
  return code;
}

/// Only operators may do it in Slurm, so its users know the words.  The signals alone would not do:
/// limits of time would go on, and nobody else would get what is idle.
int refuse_to_suspend(const std::string& verb, const std::vector<std::string>& words) {
  if (words.empty()) throw CommandFailed("too few arguments for keyword:" + verb);
  for (const std::string& word : words)
    std::fprintf(stderr, "Access/permission denied for job %s\n", word.c_str());
  std::fputs(
      "scontrol: error: hpcbatch suspends no jobs; scancel --full --signal=STOP stops the "
      "programs of one, --signal=CONT continues them, and its time limit goes on\n",
      stderr);
  return 1;
}

/// Until it runs, as its nodes are ready then.
int wait_for_job(const std::vector<std::string>& words, const Session& session,
                 EngineJobs& engine) {
  if (words.empty()) throw CommandFailed("too few arguments for keyword:wait_job");
  const NamedJobs named = jobs_said(words, "Invalid job id specified");
  for (;;) {
    const std::vector<Job> jobs = found_jobs(engine, named.ours);
    if (jobs.empty()) throw CommandFailed("Invalid job id specified");
    if (has_ended(jobs.front().state))
      throw CommandFailed("scontrol: Job " + words.front() + " no longer running");
    if (jobs.front().state != JobState::Pending) return 0;
    session.interrupt.pause(std::chrono::seconds{1});
  }
}

}  // namespace

int scontrol(const Call& call, const Session& session) {
  const Parsed parsed = parse_options(scontrol_options(), call.words);
  EngineJobs engine(session);
  if (parsed.words.empty())
    throw CommandFailed("scontrol: error: say what to do; there is no prompt here");
  const std::string& verb = parsed.words.front();
  const std::vector<std::string> rest(parsed.words.begin() + 1, parsed.words.end());
  if (verb == "show") return show(call, parsed, engine);
  if (verb == "hold" || verb == "uhold") return change(call, "hold", rest, engine);
  if (verb == "release") return change(call, "release", rest, engine);
  if (verb == "update") return update_jobs(call, rest, engine);
  if (verb == "requeue") return change(call, "retry", rest, engine);
  if (verb == "requeuehold") return change(call, verb, rest, engine);
  if (verb == "suspend" || verb == "resume") return refuse_to_suspend(verb, rest);
  if (verb == "wait_job") return wait_for_job(rest, session, engine);
  if (verb == "version") {
    print_text(std::string(kVersion) + "\n");
    return 0;
  }
  if (verb == "ping") {
    engine.client().get("/v1/engine");
    print_text("Slurmctld(primary) at hpcbatch is UP\n");
    return 0;
  }
  throw CommandFailed("invalid keyword: " + verb +
                      "\nscontrol: error: hpcbatch has show, update, hold, release, requeue, "
                      "requeuehold, wait_job, "
                      "ping and version");
}

}  // namespace hpcbatch::slurm_commands
