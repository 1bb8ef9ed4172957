// srun within a task: a step, which is programs side by side on the task's node, on cpus and GPUs of
// the task.
#include "batch/slurm_options.hpp"
#include "cli/process/process.hpp"
#include "cli/tasks/submission.hpp"
#include "documents/task_values.hpp"
#include "model/quantities.hpp"
#include "slurm_commands/commands.hpp"
#include "slurm_commands/step.hpp"

#include <hpcbatch/batch_time.hpp>
#include <hpcbatch/text.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch::slurm_commands {
namespace {

constexpr unsigned kMostTasks = 4096;
/// What Slurm exits with where an option's value is none.
constexpr int kBadOption = 255;

std::string of_environment(const EnvironmentMap& environment, const std::string& name,
                           const std::string& otherwise = "") {
  const auto at = environment.find(name);
  return at == environment.end() || at->second.empty() ? otherwise : at->second;
}

/// What is asked for, by the command line and the environment (srun(1), INPUT ENVIRONMENT VARIABLES).
class Asked {
 public:
  explicit Asked(const Call& call)
      : call_(call), parsed_(parse_options(srun_options(), call.words)) {}

  bool has(const char* option, const char* name) const {
    return parsed_.has(option) || !of_environment(call_.environment, name).empty();
  }
  std::optional<std::string> value(const char* option, const char* name) const {
    if (auto said = parsed_.value(option)) return said;
    const std::string text = of_environment(call_.environment, name);
    return text.empty() ? std::nullopt : std::optional(text);
  }
  std::optional<unsigned> number(const char* option, const char* name) const {
    const auto text = value(option, name);
    if (!text) return std::nullopt;
    const auto number = number_in<unsigned>(*text);
    if (!number || *number == 0 || *number > kMostTasks)
      throw CommandFailed("srun: error: Invalid numeric value \"" + *text + "\" for --" + option +
                          ".");
    return number;
  }
  const EnvironmentMap& environment() const { return call_.environment; }
  const Parsed& parsed() const { return parsed_; }
  std::string user() const { return viewed_by(call_).user; }

 private:
  const Call& call_;
  Parsed parsed_;
};

struct Step {
  unsigned tasks{1}, cpus{1};  ///< cpus of each
  unsigned gpus{0}, gpus_per_task{0};
  bool asks_for_gpus{false}, says_cpus{false};
  bool overlaps{false}, is_exact{false}, overcommits{false}, label{false};
  std::string job;  ///< its number
  std::string node;
  std::vector<std::string> task_nodes;  ///< that where srun runs first
  std::vector<unsigned> ranks;          ///< of each of the step's nodes
  Shares may_have;                      ///< of the task's nodes
  HeldShare share;

  bool is_wide() const { return task_nodes.size() > 1; }
  const std::string& name_of(unsigned node_of_task) const { return task_nodes[node_of_task]; }
};

std::string step_id(const Step& step) {
  return step.job + "." + std::to_string(step.share.step);
}

[[noreturn]] void cannot_create(const std::string& job, const std::string& why,
                                const std::string& more = "") {
  throw CommandFailed((more.empty() ? "" : "srun: error: " + more + "\n") +
                      "srun: error: Unable to create step for job " + job + ": " + why);
}

std::string short_host() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const std::string whole = host;
  return whole.substr(0, whole.find('.'));
}

std::vector<int> own_cpus() {
  cpu_set_t mask;
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
  }
  return cpus;
}

/// Whole ones of the task.
unsigned task_cpus(const EnvironmentMap& environment) {
  for (const char* name : {"SLURM_CPUS_ON_NODE", "HPCBATCH_CPUS"}) {
    const std::string text = of_environment(environment, name);
    if (const auto number = number_in<unsigned>(text.substr(0, text.find('.'))))
      return std::clamp(*number, 1U, kMostTasks);
  }
  return std::max<unsigned>(1, static_cast<unsigned>(own_cpus().size()));
}

constexpr const char* kGpuVariables[] = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                         "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"};

std::vector<std::string> task_gpus(const EnvironmentMap& environment) {
  return split_at(of_environment(environment, "HPCBATCH_GPUS"), ',');
}

void read_gpus(Step& step, const Asked& asked) {
  const std::pair<const char*, const char*> kOptions[] = {
      {"gpus", "SRUN_GPUS"}, {"gpus-per-node", "SRUN_GPUS_PER_NODE"}, {"gres", "SRUN_GRES"}};
  for (const auto& [option, name] : kOptions) {
    const auto text = asked.value(option, name);
    if (!text) continue;
    step.asks_for_gpus = true;
    step.gpus = std::max(step.gpus, gpus_in(*text));
  }
  if (const auto text = asked.value("gpus-per-task", "SRUN_GPUS_PER_TASK")) {
    step.asks_for_gpus = true;
    step.gpus_per_task = gpus_in(*text);
    step.gpus = std::max(step.gpus, step.gpus_per_task * step.ranks.front());
  }
  const std::size_t there = task_gpus(asked.environment()).size();
  if (step.gpus <= there) return;
  cannot_create(step.job, "Invalid generic resource (gres) specification",
                there == 0 ? "Step requested GRES but job doesn't have GRES" : "");
}

void check_memory(const Step& step, const Asked& asked) {
  const std::string there = of_environment(asked.environment(), "HPCBATCH_MEM_MB");
  for (const char* option : {"mem", "mem-per-cpu"}) {
    const auto text = asked.parsed().value(option);
    if (!text) continue;
    const auto amount = megabytes(*text);
    if (!amount)
      throw CommandFailed(std::string("srun: error: Invalid --") + option + " specification",
                          kBadOption);
    const double times = std::string_view(option) == "mem" ? 1 : step.ranks.front() * step.cpus;
    if (const auto most = number_in<unsigned>(there); most && *amount * times > *most)
      cannot_create(step.job, "Memory required by task is not available");
  }
}

/// On which of the task's nodes, and how many ranks on each.
void read_nodes(Step& step, const Asked& asked) {
  step.task_nodes = split_at(of_environment(asked.environment(), "HPCBATCH_NODES"), ',');
  if (step.task_nodes.empty()) step.task_nodes = {step.node};
  const auto own_node =
      number_in<unsigned>(of_environment(asked.environment(), "HPCBATCH_NODE_INDEX", "0"))
          .value_or(0);
  if (own_node < step.task_nodes.size()) std::swap(step.task_nodes[0], step.task_nodes[own_node]);
  for (unsigned node = 0; node < step.task_nodes.size(); ++node) step.may_have.push_back(node);
  const std::size_t there = step.task_nodes.size();
  const std::string said = asked.parsed().value("nodes").value_or("");
  const auto least = number_in<unsigned>(said.substr(0, said.find('-')));
  if (!said.empty() && (!least || *least == 0 || *least > there))
    throw CommandFailed("srun: error: Only allocated " + std::to_string(there) +
                        " nodes asked for " + said +
                        "\nsrun: error: submit the task with more --nodes, or use the cluster's "
                        "own srun: HPCBATCH_SLURM_REAL=1 srun ...");
  const auto hosts = expand_hosts(asked.parsed().value("nodelist").value_or(""));
  if (!hosts.empty()) step.may_have.clear();
  for (const std::string& host : hosts) {
    const std::string own = host.substr(0, host.find('.'));
    const bool is_here = own == step.node || own == short_host() || own == "localhost";
    auto found = std::find(step.task_nodes.begin(), step.task_nodes.end(), host);
    if (found == step.task_nodes.end() && is_here) found = step.task_nodes.begin();
    if (found == step.task_nodes.end())
      cannot_create(step.job, "Requested node configuration is not available");
    step.may_have.push_back(static_cast<unsigned>(found - step.task_nodes.begin()));
  }
  const auto many = static_cast<unsigned>(step.may_have.size());
  step.ranks = ranks_of_nodes(step.tasks, std::min({least.value_or(many), many, step.tasks}));
}

/// That a step is asked for in its own job, and in a way that is there.
void check_place(const Step& step, const Asked& asked) {
  if (const auto job = asked.parsed().value("jobid");
      job && *job != step.job && *job != of_environment(asked.environment(), "SLURM_ARRAY_JOB_ID"))
    throw CommandFailed("srun: error: Unable to confirm allocation for job " + *job +
                        ": Invalid job id specified\nsrun: Check SLURM_JOB_ID environment "
                        "variable. Expired or invalid job " +
                        *job);
  const auto mpi = asked.value("mpi", "SLURM_MPI_TYPE");
  if (mpi && *mpi != "none" && step.tasks > 1)
    throw CommandFailed("srun: error: --mpi=" + *mpi +
                        ": hpcbatch starts no processes of one MPI program; use mpirun");
}

Step read_step(const Asked& asked) {
  const EnvironmentMap& environment = asked.environment();
  Step step;
  step.job = of_environment(environment, "SLURM_JOB_ID",
                            of_environment(environment, "HPCBATCH_BATCH_NUMBER", "0"));
  step.node = of_environment(environment, "SLURMD_NODENAME", short_host());
  step.tasks = asked.number("ntasks", "SLURM_NTASKS").value_or(1);
  const auto cpus = asked.number("cpus-per-task", "SRUN_CPUS_PER_TASK");
  step.says_cpus = cpus.has_value();
  step.cpus = cpus.value_or(1);
  // Programs within a step would wait for their own step's end.
  step.overlaps = asked.has("overlap", "SLURM_OVERLAP") || environment.contains("SLURM_STEP_ID");
  step.is_exact = step.says_cpus || asked.has("exact", "SLURM_EXACT") ||
                  asked.has("exclusive", "SLURM_EXCLUSIVE");
  step.overcommits = asked.has("overcommit", "SLURM_OVERCOMMIT");
  step.label = asked.has("label", "SLURM_LABELIO");
  check_place(step, asked);
  read_nodes(step, asked);
  const unsigned there = task_cpus(environment);
  if (!step.overcommits && step.ranks.front() * step.cpus > there)
    cannot_create(step.job, "More processors requested than permitted");
  check_memory(step, asked);
  if (const auto text = asked.value("cpu-bind", "SLURM_CPU_BIND")) check_binding(*text);
  read_gpus(step, asked);
  return step;
}

/// The folder of this attempt at the task in which its steps meet; empty: none is known.
std::string folder_of_steps(const EnvironmentMap& environment) {
  const std::string folder =
      of_environment(environment, "SLURM_TMPDIR", of_environment(environment, "TMPDIR"));
  if (folder.empty() || of_environment(environment, "HPCBATCH_ATTEMPT").empty()) return "";
  std::string name = folder + "/.hpcbatch/steps-" +
                     of_environment(environment, "HPCBATCH_TASK_ID") + "-" +
                     of_environment(environment, "HPCBATCH_ATTEMPT");
  return name;
}

/// Waits until the step's share of the task is free.
void wait_for_share(Step& step, const Asked& asked) {
  const unsigned there = task_cpus(asked.environment());
  std::vector<StepShares::Wanted> wanted;
  for (const unsigned ranks : step.ranks)
    wanted.push_back({step.is_exact ? std::min(there, ranks * step.cpus) : there, step.gpus});
  StepShares shares(folder_of_steps(asked.environment()), there,
                    static_cast<unsigned>(task_gpus(asked.environment()).size()),
                    static_cast<unsigned>(step.task_nodes.size()));
  const bool tells = !asked.parsed().has("quiet");
  constexpr std::chrono::milliseconds kShortest{10}, kLongest{100};
  auto pause = kShortest;
  for (bool has_waited = false;; has_waited = true) {
    if (auto held = shares.try_to_hold(wanted, !step.overlaps, step.may_have)) {
      step.share = std::move(*held);
      if (has_waited && tells)
        std::fprintf(stderr, "srun: Step created for job %s\n", step.job.c_str());
      return;
    }
    if (asked.has("immediate", "SLURM_IMMEDIATE"))
      cannot_create(step.job, "Requested nodes are busy");
    if (!has_waited && tells)
      std::fprintf(stderr,
                   "srun: Job %s step creation temporarily disabled, retrying (Requested nodes are "
                   "busy)\n",
                   step.job.c_str());
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongest);
  }
}

/// `out.%j_%t` (srun(1), "filename pattern").
std::string file_of_rank(const std::string& pattern, const Step& step, const Asked& asked,
                         unsigned rank) {
  const EnvironmentMap& environment = asked.environment();
  // One backslash, and all is meant as it stands.
  if (pattern.find('\\') != std::string::npos) {
    std::string plain = pattern;
    std::erase(plain, '\\');
    return plain;
  }
  const std::map<char, std::string> values{
      {'j', step.job},
      {'J', step_id(step)},
      {'s', std::to_string(step.share.step)},
      {'t', std::to_string(rank)},
      {'n', std::to_string(place_of_rank(rank, step.ranks).node)},
      {'N', step.name_of(step.share.nodes.at(place_of_rank(rank, step.ranks).node))},
      {'A', of_environment(environment, "SLURM_ARRAY_JOB_ID", step.job)},
      {'a', of_environment(environment, "SLURM_ARRAY_TASK_ID", "4294967294")},
      {'u', asked.user()},
      {'x', of_environment(environment, "SLURM_JOB_NAME")},
      {'%', "%"}};
  std::string text;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '%') {
      text += pattern[at];
      continue;
    }
    std::size_t width = 0;
    while (++at < pattern.size() && pattern[at] >= '0' && pattern[at] <= '9')
      width = std::min<std::size_t>(width * 10 + static_cast<std::size_t>(pattern[at] - '0'), 10);
    const auto value = at < pattern.size() ? values.find(pattern[at]) : values.end();
    if (value == values.end()) continue;
    const std::string& known = value->second;
    text += (known.size() < width ? std::string(width - known.size(), '0') : "") + known;
  }
  return text;
}

/// Where ranks read and write.
class StepFiles {
 public:
  StepFiles(const Step& step, const Asked& asked) : step_(step), asked_(asked) {
    const std::string mode = asked.value("open-mode", "SLURM_OPEN_MODE").value_or("t");
    appends_ = mode.starts_with('a');
    if (!appends_ && !mode.starts_with('t'))
      throw CommandFailed("srun: error: Invalid --open-mode specification", kBadOption);
  }

  void put(Rank& rank, unsigned number) {
    const auto out = asked_.value("output", "SLURM_STDOUTMODE");
    const auto error = asked_.value("error", "SLURM_STDERRMODE");
    rank.output = written_by(out.value_or("all"), number, STDOUT_FILENO, "stdout");
    // What goes somewhere else takes errors along.
    const bool is_same = !error && out && *out != "all";
    rank.error =
        is_same ? rank.output : written_by(error.value_or("all"), number, STDERR_FILENO, "stderr");
    const std::string in = asked_.value("input", "SLURM_STDINMODE").value_or("all");
    if (in == "all") return;
    rank.reads = is_rank(in) && number_in<unsigned>(in) == number;
    if (in == "none" || is_rank(in)) return;
    rank.input = file_of_rank(in, step_, asked_, number);
    if (::access(rank.input.c_str(), R_OK) != 0) cannot_open("stdin");
  }

 private:
  /// Else it is the name of a file.
  bool is_rank(const std::string& text) const {
    const auto number = number_in<unsigned>(text);
    return number && *number < step_.tasks;
  }
  [[noreturn]] static void cannot_open(const char* what) {
    throw CommandFailed(std::string("srun: error: Could not open ") + what +
                        " file: " + std::strerror(errno));
  }
  int written_by(const std::string& said, unsigned number, int all, const char* what) {
    if (said == "all") return all;
    const bool is_none = said == "none" || (is_rank(said) && number_in<unsigned>(said) != number);
    if (is_rank(said) && !is_none) return all;
    const std::string path = is_none ? "/dev/null" : file_of_rank(said, step_, asked_, number);
    if (const auto at = opened_.find(path); at != opened_.end()) return at->second.get();
    // Ranks that write to one file add to it.
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (appends_ ? 0 : O_TRUNC);
    Fd file(::open(path.c_str(), flags, 0666));
    if (!file) cannot_open(what);
    return opened_.emplace(path, std::move(file)).first->second.get();
  }

  const Step& step_;
  const Asked& asked_;
  bool appends_{false};
  std::map<std::string, Fd> opened_;
};

bool is_kept_always(const std::string& name) {
  return name == "TMPDIR" || name.starts_with("SLURM_") || name.starts_with("SLURMD_") ||
         name.starts_with("HPCBATCH_") ||
         std::find(std::begin(kGpuVariables), std::end(kGpuVariables), name) !=
             std::end(kGpuVariables);
}

/// What `--export` leaves of the environment.
EnvironmentMap exported(const Asked& asked) {
  std::optional<std::string> text = asked.parsed().value("export");
  for (const char* name : {"SRUN_EXPORT_ENV", "SLURM_EXPORT_ENV"}) {
    if (!text && !of_environment(asked.environment(), name).empty())
      text = of_environment(asked.environment(), name);
  }
  const std::vector<std::string> words = split_at(text.value_or("ALL"), ',');
  const bool takes_all = std::find(words.begin(), words.end(), "ALL") != words.end();
  EnvironmentMap left;
  for (const auto& [name, value] : asked.environment()) {
    if (takes_all || is_kept_always(name) ||
        std::find(words.begin(), words.end(), name) != words.end())
      left[name] = value;
  }
  for (const std::string& word : words) {
    if (const std::size_t equals = word.find('='); equals != std::string::npos)
      left[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return left;
}

/// Of `share` what belongs to one rank where each has `each` of them; else all.
Shares of_rank(const Shares& share, unsigned rank, unsigned each) {
  if (each == 0 || share.size() < std::size_t{each} * (rank + 1)) return share;
  const auto begin = share.begin() + static_cast<std::ptrdiff_t>(std::size_t{rank} * each);
  return {begin, begin + each};
}

void put_gpus(EnvironmentMap& environment, const Step& step, const Asked& asked, unsigned rank) {
  if (!step.asks_for_gpus) return;
  const Shares own =
      of_rank(step.share.gpus, place_of_rank(rank, step.ranks).local, step.gpus_per_task);
  const auto chosen = [&](const std::vector<std::string>& names) {
    std::string text;
    for (const unsigned one : own) {
      if (one < names.size()) text.append(text.empty() ? "" : ",").append(names[one]);
    }
    return text;
  };
  const std::string numbers = chosen(task_gpus(asked.environment()));
  for (const char* name : {"HPCBATCH_GPUS", "SLURM_STEP_GPUS"}) environment[name] = numbers;
  environment["SLURM_GPUS_ON_NODE"] = std::to_string(step.gpus);
  for (const char* name : kGpuVariables) {
    if (const std::string all = of_environment(asked.environment(), name); !all.empty())
      environment[name] = chosen(split_at(all, ','));
  }
}

void put_step(EnvironmentMap& environment, const Step& step, const Asked& asked) {
  const std::string tasks = std::to_string(step.tasks), number = std::to_string(step.share.step);
  for (const char* name : {"SLURM_STEP_ID", "SLURM_STEPID"}) environment[name] = number;
  for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS"})
    environment[name] = tasks;
  std::string names, ranks;
  for (unsigned at = 0; at < step.ranks.size(); ++at) {
    names.append(at == 0 ? "" : ",").append(step.name_of(step.share.nodes.at(at)));
    ranks.append(at == 0 ? "" : ",").append(std::to_string(step.ranks[at]));
  }
  for (const char* name : {"SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE"})
    environment[name] = ranks;
  environment.try_emplace("SLURM_NODEID", "0");
  environment["SLURM_STEP_NODELIST"] = names;
  environment["SLURM_STEP_NUM_NODES"] = std::to_string(step.ranks.size());
  environment["SLURM_DISTRIBUTION"] = step.tasks == 1 ? "cyclic" : "block";
  if (step.says_cpus) environment["SLURM_CPUS_PER_TASK"] = std::to_string(step.cpus);
  if (step.is_exact)
    environment["SLURM_CPUS_ON_NODE"] =
        std::to_string(std::min(task_cpus(asked.environment()), step.ranks.front() * step.cpus));
  if (asked.parsed().has("label")) environment["SLURM_LABELIO"] = "1";
  std::string all;
  for (unsigned rank = 0; rank < step.tasks; ++rank)
    all.append(rank == 0 ? "" : ",").append(std::to_string(rank));
  environment["SLURM_GTIDS"] = all;
  char mask[8];
  const mode_t umask = ::umask(0);
  ::umask(umask);
  std::snprintf(mask, sizeof mask, "%04o", static_cast<unsigned>(umask) & 0777U);
  environment["SLURM_UMASK"] = mask;
}

/// Those of the node for each rank of a step whose cpus are its own; where the task itself is bound to
/// none, or to others than it has, nobody knows which.
std::vector<int> bound_cpus(const Step& step, const Asked& asked, unsigned rank) {
  if (step.share.nodes.at(place_of_rank(rank, step.ranks).node) != 0) return {};
  const std::vector<int> cpus = own_cpus();
  const std::string how = asked.value("cpu-bind", "SLURM_CPU_BIND").value_or("");
  if (!step.is_exact || step.overlaps || how == "none" || how == "no" || how == "off" ||
      cpus.size() != task_cpus(asked.environment()))
    return {};
  std::vector<int> own;
  for (const unsigned one :
       of_rank(step.share.cpus, place_of_rank(rank, step.ranks).local, step.cpus))
    own.push_back(cpus.at(one));
  return own;
}

std::vector<std::vector<std::string>> words_of_ranks(const Step& step, const Asked& asked,
                                                     const Interrupt& interrupt) {
  const std::vector<std::string>& words = asked.parsed().words;
  if (!asked.has("multi-prog", "SLURM_MULTI_PROG")) return {step.tasks, words};
  std::string text;
  try {
    text = read_input(words.front(), interrupt);
  } catch (const CommandError&) {
    throw CommandFailed("srun: error: Could not open multi_prog config file " + words.front());
  }
  return programs_of_ranks(text, step.tasks, words.front());
}

std::optional<std::chrono::seconds> step_limit(const Asked& asked) {
  const auto text = asked.value("time", "SLURM_TIMELIMIT");
  if (!text || batch::is_slurm_unlimited(*text)) return std::nullopt;
  const auto limit = slurm_time(*text);
  if (!limit) throw CommandFailed("srun: error: Invalid --time specification", kBadOption);
  return limit->count() == 0 ? std::nullopt : limit;
}

/// What --signal of sbatch sends to steps: `USR1@1700000000`, seconds since the epoch, as the run of
/// the script leaves it (cli/parse/script_run.cpp).
void read_signal_of_job(RunningStep& running, const Asked& asked) {
  const std::string said = of_environment(asked.environment(), "SLURM_HPCBATCH_SIGNAL");
  const std::size_t at = std::min(said.find('@'), said.size());
  if (at == said.size()) return;
  running.signal = parse_signal(said.substr(0, at));
  const auto when = number_in<unsigned>(said.substr(at + 1)).value_or(0);
  running.signal_after = std::chrono::seconds{
      static_cast<std::int64_t>(std::max(0.0, static_cast<double>(when) - now_in_seconds()))};
}

/// `USR1@30` is sent so long before the step's time is over.
void read_signal(RunningStep& running, const Asked& asked) {
  auto text = asked.parsed().value("signal");
  if (!text) return read_signal_of_job(running, asked);
  if (text->starts_with("R:")) text->erase(0, 2);
  const std::size_t at = std::min(text->find('@'), text->size());
  const auto before =
      at == text->size() ? std::optional(60U) : number_in<unsigned>(text->substr(at + 1));
  const int signal = parse_signal(text->substr(0, at));
  if (signal == 0 || !before)
    throw CommandFailed("srun: error: Invalid --signal specification", kBadOption);
  // The end of the task's own time is sbatch's to tell of.
  if (!running.limit) return;
  running.signal = signal;
  running.signal_after =
      std::max(std::chrono::seconds{0}, *running.limit - std::chrono::seconds{*before});
}

/// What a rank is told of where it is.  On another node of the task node-run starts it, which sets
/// what is of that node.
void put_place(Rank& rank, const Step& step, const Asked& asked, unsigned number) {
  const RankPlace place = place_of_rank(number, step.ranks);
  const unsigned node = step.share.nodes.at(place.node);
  EnvironmentMap own{{"SLURM_PROCID", std::to_string(number)},
                     {"SLURM_LOCALID", std::to_string(place.local)}};
  if (step.is_wide()) own["SLURMD_NODENAME"] = step.name_of(node);
  // MPICH's programs end by this, with its text, where each would run as the only process of its MPI.
  if (step.tasks > 1 && asked.value("mpi", "SLURM_MPI_TYPE").value_or("") != "none")
    own["PMI_PORT"] = "srun-starts-no-MPI-here-say-mpirun:1";
  if (node != 0) {
    std::vector<std::string> words{of_environment(asked.environment(), "HPCBATCH_NODE_RUN"), "-w",
                                   step.name_of(node), "--", "env"};
    for (const auto& [name, value] : own)
      words.push_back(std::string(name).append("=").append(value));
    words.insert(words.end(), rank.words.begin(), rank.words.end());
    rank.words = std::move(words);
  }
  for (const auto& [name, value] : own) rank.environment[name] = value;
}

RunningStep running_step(const Step& step, const Asked& asked, StepFiles& files,
                         const Interrupt& interrupt) {
  RunningStep running{.id = step_id(step), .node = step.node, .label = step.label};
  const std::string kills = asked.value("kill-on-bad-exit", "SLURM_KILL_BAD_EXIT").value_or("0");
  running.kills_on_bad_exit = kills != "0";
  const auto wait = asked.value("wait", "SLURM_WAIT");
  if (const auto seconds = number_in<unsigned>(wait.value_or("0")); seconds && *seconds != 0)
    running.wait = std::chrono::seconds{*seconds};
  running.limit = step_limit(asked);
  read_signal(running, asked);
  const auto words = words_of_ranks(step, asked, interrupt);
  EnvironmentMap environment = exported(asked);
  put_step(environment, step, asked);
  for (unsigned number = 0; number < step.tasks; ++number) {
    Rank rank{.words = words.at(number), .environment = environment};
    put_place(rank, step, asked, number);
    put_gpus(rank.environment, step, asked, number);
    rank.cpus = bound_cpus(step, asked, number);
    rank.directory = asked.value("chdir", "SLURM_WORKING_DIR").value_or("");
    files.put(rank, number);
    running.ranks.push_back(std::move(rank));
  }
  return running;
}

}  // namespace

int srun(const Call& call, const Session& session) {
  const Asked asked(call);
  const bool is_task = call.environment.contains("HPCBATCH_TASK_ID");
  if (!is_task && call.environment.contains("SLURM_JOB_ID") && !real_command(call).empty())
    become_real(call, call.words);
  if (!is_task)
    throw CommandFailed(
        "srun: error: hpcbatch has srun for steps within a task alone; submit the command with "
        "sbatch --wrap, run it with hpcbatch run -- COMMAND, or say HPCBATCH_SLURM_REAL=1 srun");
  if (asked.parsed().words.empty())
    throw CommandFailed("srun: fatal: No command given to execute.");
  Step step = read_step(asked);
  session.interrupt.let_through();
  wait_for_share(step, asked);
  StepFiles files(step, asked);
  return run_step(running_step(step, asked, files, session.interrupt));
}

}  // namespace hpcbatch::slurm_commands
