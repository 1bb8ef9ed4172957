#include "cli/tasks/submission.hpp"

#include "batch/file_pattern.hpp"
#include "batch/slurm_options.hpp"
#include "cli/parse/parse.hpp"
#include "cli/process/process.hpp"
#include "cli/show/terminal.hpp"
#include "documents/task_keys.hpp"
#include "documents/task_values.hpp"
#include "model/index_set.hpp"
#include "model/item.hpp"
#include "model/quantities.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

using OptionWords = std::vector<std::string>;

bool is_of(const std::string& flag, std::initializer_list<TaskKey::Type> types) {
  return std::any_of(task_keys().begin(), task_keys().end(), [&](const TaskKey& key) {
    return key.flag() == flag && std::find(types.begin(), types.end(), key.type) != types.end();
  });
}

/// What the script says holds beside what the command line says.
bool adds_up(const std::string& flag) {
  using Type = TaskKey::Type;
  return is_of(flag, {Type::WordList, Type::Files, Type::Variables, Type::Values});
}

/// Each of several holds, where the command line says none: what the line
/// `--dependency=afterok:1:2` means, and lists of items.
bool is_list(const std::string& flag) {
  using Type = TaskKey::Type;
  return is_of(flag, {Type::Ids, Type::Ways}) || flag == "--each" || flag == "--items" ||
         flag == "--skip-done";
}

/// Options of the script that the command line does not say otherwise.
OptionWords left_over(const OptionWords& script, const OptionWords& said) {
  OptionWords left;
  bool is_taken = true;
  for (auto word = script.begin(); word != script.end(); ++word) {
    if (const std::string flag = option_in(*word); !flag.empty()) {
      const auto says_it = [&](const std::string& other) { return option_in(other) == flag; };
      const bool is_said = std::any_of(said.begin(), said.end(), says_it);
      // Of several lines the last holds, as of sbatch's.
      const bool is_last = is_list(flag) || std::none_of(word + 1, script.end(), says_it);
      is_taken = adds_up(flag) || (!is_said && is_last);
    }
    if (is_taken) left.push_back(*word);
  }
  return left;
}

bool has_batch_line(const std::string& text) {
  for (const char* mark : {"#PBS", "#HPCBATCH"}) {
    if (text.starts_with(mark) || text.find(std::string("\n") + mark) != std::string::npos)
      return true;
  }
  return false;
}

std::string read_text(const SubmitCommand& asked, const Interrupt& interrupt) {
  std::string meant = "hpcbatch submit -- " + asked.script;
  for (const std::string& word : asked.work.command) meant += " " + word;
  const std::string hint = "; if it is the command, write it behind the dashes: " + meant;
  std::string text;
  try {
    text = read_input(asked.script, interrupt);
  } catch (const CommandError& error) {
    throw CommandError(kExitUsage, error.what() + hint);
  }
  if (text.find('\0') != std::string::npos)
    throw CommandError(kExitUsage, asked.script + " is no script" + hint);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw CommandError(kExitUsage, asked.script + " is empty: there is nothing to run");
  // As sbatch has it: a file of data would be run by a shell, line by line.
  if (!text.starts_with("#!") && !has_batch_line(text))
    throw CommandError(kExitUsage, asked.script +
                                       " is no script: its first line does not begin with #!, as "
                                       "in #!/bin/sh; if it is one of several items, list them "
                                       "with --items" +
                                       hint);
  return text;
}

std::string host_name() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return host;
}

/// As client_name has it, without the door by which he came.
std::string user_name() {
  const std::string client = client_name();
  return client.substr(client.find(':') + 1);
}

std::string variable_of(const Surroundings& around, const std::string& name) {
  const auto found = around.environment.find(name);
  return found == around.environment.end() ? std::string() : found->second;
}

/// Those that are there only where they have a value.
void add_said(Assignments& variables, const char* name, const std::string& value) {
  if (!value.empty()) variables.emplace_back(name, value);
}

std::string tag_value(const WorkOptions& work, std::string_view key) {
  std::string value;
  const auto tags = work.said.find("tags");
  if (tags == work.said.end()) return value;
  for (const std::string& tag : tags->second)
    if (tag.starts_with(key) && tag.substr(key.size(), 1) == "=")
      value = tag.substr(key.size() + 1);
  return value;
}

/// The step of `0-9:3`, of several the first; of others 1, as SLURM has it.
std::string step_of(const std::string& indices) {
  const std::size_t colon = indices.find(':');
  if (colon == std::string::npos) return "1";
  return indices.substr(colon + 1, indices.find(',', colon) - colon - 1);
}

void add_array(Assignments& variables, const ManyOptions& many) {
  if (!many.array) return;
  const auto indices = parse_index_set(many.array->indices);
  if (!indices || indices->empty()) return;
  variables.emplace_back("SLURM_ARRAY_TASK_COUNT", std::to_string(indices->size()));
  variables.emplace_back("SLURM_ARRAY_TASK_MIN", std::to_string(indices->ranges().back().first));
  variables.emplace_back("SLURM_ARRAY_TASK_MAX", std::to_string(indices->ranges().front().last));
  variables.emplace_back("SLURM_ARRAY_TASK_STEP", step_of(many.array->indices));
}

/// Of a script that only names some of them.
Assignments few_variables(const WorkOptions& work, const std::string& directory) {
  return {{"SLURM_SUBMIT_DIR", directory}, {"SLURM_NTASKS", "1"},
          {"SLURM_NPROCS", "1"},           {"SLURM_NNODES", "1"},
          {"SLURM_JOB_NUM_NODES", "1"},    {"SLURM_JOB_NAME", without_doubled(work.one("name"))}};
}

/// Of sbatch's variables those that are the same for all tasks.
Assignments slurm_variables(const SubmitCommand& submit, const batch::Terms& terms,
                            const Surroundings& around) {
  Assignments all = terms.variables;
  if (terms.tasks != 0) {
    for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS"})
      all.emplace_back(name, std::to_string(terms.tasks));
  }
  all.insert(all.end(), {{"SLURM_SUBMIT_DIR", around.directory},
                         {"SLURM_NNODES", std::to_string(terms.nodes)},
                         {"SLURM_JOB_NUM_NODES", std::to_string(terms.nodes)},
                         {"SLURM_JOB_NAME", without_doubled(submit.work.one("name"))},
                         {"SLURM_SUBMIT_HOST", host_name()},
                         {"SLURM_JOB_USER", user_name()},
                         {"SLURM_JOB_UID", std::to_string(::getuid())},
                         {"SLURM_JOB_GID", std::to_string(::getgid())},
                         {"SLURM_PRIO_PROCESS", "0"},
                         {"ENVIRONMENT", "BATCH"}});
  add_said(all, "SLURM_JOB_ACCOUNT", tag_value(submit.work, "account"));
  add_said(all, "SLURM_JOB_PARTITION", tag_value(submit.work, "partition"));
  add_said(all, "SLURM_JOB_QOS", tag_value(submit.work, "qos"));
  add_said(all, "SLURM_JOB_RESERVATION", tag_value(submit.work, "reservation"));
  if (terms.memory_per_cpu != 0)
    all.emplace_back("SLURM_MEM_PER_CPU", std::to_string(terms.memory_per_cpu >> 20));
  add_array(all, submit.many);
  return all;
}

Assignments pbs_variables(const SubmitCommand& submit, const batch::Terms& terms,
                          const Surroundings& around) {
  Assignments all{{"PBS_O_WORKDIR", around.directory},
                  {"PBS_O_HOST", host_name()},
                  {"PBS_O_SYSTEM", "Linux"},
                  {"PBS_ENVIRONMENT", "PBS_BATCH"},
                  {"PBS_JOBNAME", without_doubled(submit.work.one("name"))},
                  {"PBS_NUM_NODES", std::to_string(terms.nodes)},
                  {"HPCBATCH_MPIPROCS", std::to_string(std::max(1U, terms.tasks))}};
  for (const char* name : {"HOME", "PATH", "LOGNAME", "SHELL", "LANG", "MAIL", "TZ"})
    add_said(all, (std::string("PBS_O_") + name).c_str(), variable_of(around, name));
  add_said(all, "PBS_ACCOUNT", tag_value(submit.work, "account"));
  add_said(all, "PBS_QUEUE", tag_value(submit.work, "partition"));
  add_said(all, "PBS_O_QUEUE", tag_value(submit.work, "partition"));
  return all;
}

/// A name with signs of sbatch's, as a path of ours.
std::string with_pattern(const std::string& file, const batch::PatternNames& names) {
  if (!file.starts_with(batch::kPatternMark)) return file;
  return batch::slurm_file(std::string_view(file).substr(1), names).value_or(std::string());
}

/// Whose command it came by.
BatchSystem system_of(const SubmitCommand& asked) {
  if (asked.as_qsub) return BatchSystem::Pbs;
  return asked.as_sbatch ? BatchSystem::Slurm : BatchSystem::None;
}

using PbsValues = std::vector<std::pair<std::string, std::string>>;

/// `$NAME` and `${NAME}`, whose braces are doubled where the name is to stand as it is.
std::string with_pbs_values(const std::string& file, const PbsValues& values) {
  std::string filled;
  for (std::size_t at = 0; at < file.size();) {
    std::size_t taken = 0;
    for (const auto& [name, value] : values) {
      for (const std::string& sign : {"${{" + name + "}}", "${" + name + "}", "$" + name}) {
        if (taken > 0 || file.compare(at, sign.size(), sign) != 0) continue;
        taken = sign.size();
        filled += value;
      }
    }
    if (taken == 0) filled.push_back(file[at]);
    at += std::max<std::size_t>(taken, 1);
  }
  return filled;
}

/// qsub(1B): a folder gets NAME.oNUMBER, as do files that are not named.  $PBS_JOBID may be part of a
/// name, and Torque's qsub takes the job's other variables as well.
std::string pbs_file(std::string file, const std::string& letter, const SubmitCommand& submit,
                     const std::string& directory) {
  const bool is_array = submit.many.array.has_value();
  const std::string number = is_array ? "{array_number}[{index}]" : "{array_number}";
  PbsValues values{{"PBS_JOBID", number + ".hpcbatch"},
                   {"PBS_JOBNAME", submit.work.one("name")},
                   {"PBS_O_WORKDIR", as_it_stands(directory)}};
  if (is_array)
    for (const char* name : {"PBS_ARRAY_INDEX", "PBS_ARRAYID"})
      values.emplace_back(name, "{index}");
  file = with_pbs_values(file, values);
  std::error_code error;
  const auto place = std::filesystem::path(directory) / without_doubled(file);
  if (!file.empty() && !file.ends_with('/') && !std::filesystem::is_directory(place, error))
    return file;
  if (!file.empty() && !file.ends_with('/')) file += '/';
  file.append(submit.work.one("name")).append("." + letter + "{array_number}");
  return is_array ? file + ".{index}" : file;
}

/// The streams of a task, by the names of their keys.
constexpr std::array<const char*, 3> kStreams{"stdin", "stdout", "stderr"};

/// The files of its streams, as script, command line and batch system name them; empty: none is said.
std::map<std::string, std::string> files_of(const SubmitCommand& submit, const Script& script,
                                            const Surroundings& around) {
  const WorkOptions& work = submit.work;
  const bool is_array = submit.many.array || !submit.many.items.sources.empty();
  const batch::PatternNames names{without_doubled(work.one("name")), user_name(), is_array};
  std::map<std::string, std::string> files;
  for (const char* stream : kStreams) files[stream] = work.one(stream);
  for (auto& [stream, file] : files) file = with_pattern(file, names);
  if (submit.as_sbatch && files["stdout"].empty())
    files["stdout"] =
        batch::slurm_file(is_array ? "slurm-%A_%a.out" : "slurm-%j.out", names).value();
  for (const char* stream : {"stdout", "stderr"}) {
    std::string& file = files[stream];
    if (script.system == BatchSystem::Pbs && (submit.as_qsub || !file.empty()))
      file = pbs_file(file, stream[3] == 'o' ? "o" : "e", submit, around.directory);
  }
  if (script.terms.joined == "oe") files["stderr"] = files["stdout"];
  if (script.terms.joined == "eo") files["stdout"] = files["stderr"];
  if (script.system == BatchSystem::Slurm && files["stderr"].empty())
    files["stderr"] = files["stdout"];
  return files;
}

void put_files(SubmitCommand& submit, const Script& script, const Surroundings& around) {
  WorkOptions& work = submit.work;
  // qsub(1B): a job begins in the user's home, and its files lie where it was submitted.
  const bool is_at_home = script.system == BatchSystem::Pbs && !work.says("directory");
  for (auto& [stream, file] : files_of(submit, script, around)) {
    if (file.empty()) continue;
    if (is_at_home && file != "none")
      work.said[stream] = {(std::filesystem::path(as_it_stands(around.directory)) / file).string()};
    else
      work.said[stream] = {file};
  }
  if (is_at_home) work.said["directory"] = {as_it_stands(variable_of(around, "HOME"))};
}

/// Before what the user sets, which holds.
void put_variables(WorkOptions& work, const Assignments& variables) {
  std::vector<std::string> all;
  all.reserve(variables.size());
  for (const auto& [name, value] : variables) all.emplace_back(name).append("=").append(value);
  std::vector<std::string>& said = work.said["env"];
  said.insert(said.begin(), all.begin(), all.end());
}

/// The signal that comes before the time is over.  sbatch takes it of a job without a limit, which
/// never gets it.
void put_signal(BatchRun& run, const SubmitCommand& submit, const batch::Terms& terms) {
  const auto limit = parse_duration(submit.work.one("time"));
  if (!submit.work.says("time") || !limit) {
    if (submit.as_sbatch) return;
    throw CommandError(kExitUsage, submit.script +
                                       ": --signal comes before its time is over, and it has no "
                                       "limit; say one with --time");
  }
  const std::chrono::seconds before{terms.signal_before};
  const auto after = std::max<std::int64_t>(
      0, std::chrono::duration_cast<std::chrono::seconds>(*limit - before).count());
  run.signal = terms.signal;
  run.signals_steps = terms.signals_steps;
  run.signal_after = std::to_string(after);
}

/// A number of them; nothing where none is said, or all of a node.
std::optional<double> amount_said(const WorkOptions& work, std::string_view name) {
  const auto said = work.said.find(name);
  if (said == work.said.end() || said->second.back() == "all") return std::nullopt;
  const json::value amount = task_value(*find_task_key(name), said->second);
  if (!amount.is_object()) return amount.to_number<double>();
  double all = 0;
  for (const auto& [kind, count] : amount.get_object()) all += count.to_number<double>();
  return all;
}

/// What is asked for each cpu and each GPU, of as many as script and command line come to.
void put_products(WorkOptions& work, batch::Terms& terms) {
  const double gpus = std::max(1.0, amount_said(work, "gpus").value_or(1));
  if (terms.cpus_per_gpu != 0 && !work.says("cpus"))
    work.said["cpus"] = {std::to_string(std::llround(terms.cpus_per_gpu * gpus))};
  if (work.says("memory")) {
    terms.memory_per_cpu = 0;
    terms.memory_otherwise = false;
    return;
  }
  double memory = static_cast<double>(terms.memory_per_gpu) * gpus;
  if (terms.memory_per_cpu != 0) {
    const auto cpus = work.says("cpus") ? amount_said(work, "cpus") : 1;
    if (!cpus) {
      work.said["memory"] = {"all"};
      return;
    }
    memory = static_cast<double>(terms.memory_per_cpu) * *cpus;
  }
  // More than any node has, and no overflow.
  constexpr double kMost = std::uint64_t{1} << 50U;
  if (memory > 0)
    work.said["memory"] = {std::to_string(static_cast<std::uint64_t>(std::min(memory, kMost)))};
}

/// What its batch system would tell it.
void put_batch(SubmitCommand& submit, const Script& script, const Surroundings& around) {
  WorkOptions& work = submit.work;
  put_files(submit, script, around);
  work.said["numbered"] = {"true"};
  const Assignments variables = script.system == BatchSystem::Slurm
                                    ? slurm_variables(submit, script.terms, around)
                                    : pbs_variables(submit, script.terms, around);
  put_variables(work, variables);
  BatchRun run{.system = script.system,
               .says_cpus = script.terms.says_cpus,
               .says_memory_otherwise = script.terms.memory_otherwise};
  if (!script.terms.signal.empty()) put_signal(run, submit, script.terms);
  set_run(work.command, run);
}

/// What says the same here; empty: nothing does.
std::string_view ours_for(std::string_view variable) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kOurs{
      {{"SLURM_JOB_ID", "HPCBATCH_TASK_ID"},
       {"SLURM_JOBID", "HPCBATCH_TASK_ID"},
       {"SLURM_ARRAY_JOB_ID", "HPCBATCH_TASK_ID"},
       {"PBS_JOBID", "HPCBATCH_TASK_ID"},
       {"LSB_JOBID", "HPCBATCH_TASK_ID"},
       {"PBS_ARRAY_INDEX", "HPCBATCH_TASK_INDEX"},
       {"PBS_ARRAYID", "HPCBATCH_TASK_INDEX"},
       {"LSB_JOBINDEX", "HPCBATCH_TASK_INDEX"},
       {"SGE_TASK_ID", "HPCBATCH_TASK_INDEX"},
       {"SLURM_TMPDIR", "TMPDIR"},
       {"PBS_JOBDIR", "TMPDIR"},
       {"SLURM_MEM_PER_NODE", "HPCBATCH_MEM_MB"},
       {"SLURM_JOB_CPUS_PER_NODE", "HPCBATCH_CPUS"},
       {"PBS_NP", "HPCBATCH_CPUS"}}};
  const auto* const at = std::find_if(kOurs.begin(), kOurs.end(),
                                      [&](const auto& one) { return one.first == variable; });
  return at == kOurs.end() ? std::string_view{} : at->second;
}

/// What SLURM leaves unset where nothing asks for it, or sets within steps of srun alone: a script may
/// look at them there as well.
bool is_left_unset(BatchSystem system, std::string_view name) {
  static constexpr std::array<std::string_view, 24> kSlurm{"SLURM_ARRAY_JOB_ID",
                                                           "SLURM_ARRAY_TASK_COUNT",
                                                           "SLURM_ARRAY_TASK_ID",
                                                           "SLURM_ARRAY_TASK_MAX",
                                                           "SLURM_ARRAY_TASK_MIN",
                                                           "SLURM_ARRAY_TASK_STEP",
                                                           "SLURM_CPUS_PER_TASK",
                                                           "SLURM_GPUS_ON_NODE",
                                                           "SLURM_JOB_GPUS",
                                                           "SLURM_JOB_RESERVATION",
                                                           "SLURM_LABELIO",
                                                           "SLURM_MEM_PER_CPU",
                                                           "SLURM_NTASKS",
                                                           "SLURM_NTASKS_PER_GPU",
                                                           "SLURM_NPROCS",
                                                           "SLURM_RESTART_COUNT",
                                                           "SLURM_STEPID",
                                                           "SLURM_STEP_GPUS",
                                                           "SLURM_STEP_ID",
                                                           "SLURM_STEP_NODELIST",
                                                           "SLURM_STEP_NUM_NODES",
                                                           "SLURM_STEP_NUM_TASKS",
                                                           "SLURM_STEP_TASKS_PER_NODE",
                                                           "SLURM_UMASK"};
  static constexpr std::array<std::string_view, 4> kPbs{"PBS_ACCOUNT", "PBS_ARRAYID",
                                                        "PBS_ARRAY_ID", "PBS_ARRAY_INDEX"};
  const auto is_it = [&](std::string_view one) { return one == name; };
  return (system == BatchSystem::Slurm &&
          (batch::is_slurm_variable(name) || std::any_of(kSlurm.begin(), kSlurm.end(), is_it))) ||
         (system == BatchSystem::Pbs && std::any_of(kPbs.begin(), kPbs.end(), is_it));
}

/// Whether it has a value: by us, by the user, or none under its own batch system either.
bool is_known_variable(const std::string& name, const Script& script, const SubmitCommand& submit,
                       const Surroundings& around) {
  const Assignments said = submit.work.pairs("env");
  if (std::any_of(said.begin(), said.end(), [&](const auto& one) { return one.first == name; }) ||
      around.environment.contains(name))
    return true;
  if (script.system != BatchSystem::None) {
    // Of scripts for several systems each leaves those of the others unset.
    const bool is_own = name.starts_with(script.system == BatchSystem::Slurm ? "SLURM" : "PBS");
    return !is_own || is_left_unset(script.system, name) || is_set_by_run(script.system, name);
  }
  if (!script.names_slurm) return false;
  if (name == kOfEachTask.back()) return is_many(submit.many);
  return std::find(kOfEachTask.begin(), kOfEachTask.end(), name) != kOfEachTask.end();
}

void refuse_unset(const Script& script, const SubmitCommand& submit, const Surroundings& around,
                  const std::string& file) {
  std::string unset, hints;
  for (const BatchVariable& variable : script.variables) {
    if (is_known_variable(variable.name, script, submit, around)) continue;
    unset += (unset.empty() ? "" : ", ") + variable.name + " (line " +
             std::to_string(variable.line) + ")";
    if (const auto ours = ours_for(variable.name); !ours.empty())
      hints += "; $" + std::string(ours) + " says the same as " + variable.name;
    if (variable.name == kOfEachTask.back()) hints += "; --array sets " + variable.name;
  }
  if (unset.empty()) return;
  throw CommandError(
      kExitUsage, file + " uses " + unset + ", which nobody sets here" + hints +
                      "; give a value with --env NAME=VALUE, write a default into the script, as "
                      "${NAME:-VALUE}, or hand it to the batch system itself");
}

}  // namespace

SubmitCommand with_script(const SubmitCommand& asked, const Surroundings& around,
                          const Interrupt& interrupt) {
  return with_text_of_script(asked, read_text(asked, interrupt), around);
}

SubmitCommand with_text_of_script(const SubmitCommand& asked, const std::string& text,
                                  const Surroundings& around, WordsBeside beside) {
  for (const std::string& word : asked.words)
    if (std::string flag = option_in(word); !flag.empty()) beside.submit.push_back(std::move(flag));
  const std::string file =
      (std::filesystem::path(around.directory) / asked.script).lexically_normal().string();
  Script script;
  try {
    script = read_script(text, file, asked.work.command, system_of(asked), beside);
  } catch (const std::invalid_argument& error) {
    throw CommandError(kExitUsage, error.what());
  }
  for (const std::string& note : script.notes) {
    if (system_of(asked) != BatchSystem::None) break;
    say(asked.script + ": " + note);
  }
  OptionWords words{"submit"};
  const OptionWords options = left_over(script.options, asked.words);
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), asked.words.begin() + 1, asked.words.end());
  words.emplace_back("--");
  words.insert(words.end(), script.command.begin(), script.command.end());
  Command command;
  try {
    command = parse_command(words);
  } catch (const CommandError& error) {
    throw CommandError(kExitUsage, asked.script + ": " + error.what());
  }
  auto* submit = std::get_if<SubmitCommand>(&command);
  if (submit == nullptr || !submit->script.empty())
    throw CommandError(kExitUsage,
                       asked.script + ": a line #HPCBATCH holds options of submit alone");
  WorkOptions& work = submit->work;
  // sbatch(1), --job-name.
  if (!work.says("name") && script.terms.has_no_name) work.said["name"] = {""};
  if (!work.says("name") && asked.script != "-")
    work.said["name"] = {as_it_stands(std::filesystem::path(file).filename().string())};
  submit->as_sbatch = asked.as_sbatch;
  submit->as_qsub = asked.as_qsub;
  submit->is_parsable = script.terms.is_parsable;
  submit->is_quiet = script.terms.is_quiet;
  script.terms.says_cpus =
      script.terms.says_cpus ||
      std::any_of(asked.words.begin(), asked.words.end(),
                  [](const std::string& word) { return option_in(word) == "--cpus"; });
  put_products(work, script.terms);
  if (script.system != BatchSystem::None) {
    put_batch(*submit, script, around);
  } else if (script.names_slurm) {
    put_variables(work, few_variables(work, around.directory));
  }
  refuse_unset(script, *submit, around, asked.script);
  return *submit;
}

}  // namespace hpcbatch
