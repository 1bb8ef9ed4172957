#include "cli/tasks/script_command.hpp"

#include "cli/parse/parse.hpp"
#include "cli/parse/script.hpp"
#include "cli/process/exit.hpp"
#include "cli/tasks/task_file.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <variant>
#include <vector>

namespace hpcbatch {
namespace {

using OptionWords = std::vector<std::string>;

std::string flag_of(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : std::string();
}

/// Each of several holds.
bool adds_up(const std::string& flag) {
  static constexpr std::array<std::string_view, 6> kAll{"--tag",   "--env",    "--not-site",
                                                        "--input", "--output", "--param"};
  return std::find(kAll.begin(), kAll.end(), flag) != kAll.end();
}

/// Options of the script that the command line does not say otherwise.
OptionWords left_over(const OptionWords& script, const OptionWords& said) {
  OptionWords left;
  bool is_taken = true;
  for (auto word = script.begin(); word != script.end(); ++word) {
    if (const std::string flag = flag_of(*word); !flag.empty()) {
      const auto says_it = [&](const std::string& other) { return flag_of(other) == flag; };
      // Of several lines the last holds, as of sbatch's.
      is_taken = adds_up(flag) || (std::none_of(said.begin(), said.end(), says_it) &&
                                   std::none_of(word + 1, script.end(), says_it));
    }
    if (is_taken) left.push_back(*word);
  }
  return left;
}

bool has_batch_line(const std::string& text) {
  for (const char* mark : {"#SBATCH", "#HPCBATCH"}) {
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

/// Of sbatch's variables those that are the same for all tasks; what the user sets holds.
void set_slurms_variables(WorkOptions& work, const std::string& directory) {
  Assignments variables{{"SLURM_SUBMIT_DIR", directory}, {"SLURM_NTASKS", "1"},
                        {"SLURM_NPROCS", "1"},           {"SLURM_NNODES", "1"},
                        {"SLURM_JOB_NUM_NODES", "1"},    {"SLURM_JOB_NAME", work.name}};
  work.env.insert(work.env.begin(), variables.begin(), variables.end());
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

void refuse_unset(const Script& script, const SubmitCommand& submit, const Surroundings& around,
                  const std::string& file) {
  const auto is_set = [&](const std::string& name) {
    const auto is_it = [&](const auto& one) { return one.first == name; };
    if (name == kOfEachTask.back()) return is_many(submit.many);
    return std::find(kOfEachTask.begin(), kOfEachTask.end(), name) != kOfEachTask.end() ||
           std::any_of(submit.work.env.begin(), submit.work.env.end(), is_it) ||
           around.environment.contains(name);
  };
  std::string unset, hints;
  for (const BatchVariable& variable : script.variables) {
    if (is_set(variable.name)) continue;
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
  const std::string file =
      (std::filesystem::path(around.directory) / asked.script).lexically_normal().string();
  Script script;
  try {
    script = read_script(read_text(asked, interrupt), file, asked.work.command);
  } catch (const std::invalid_argument& error) {
    throw CommandError(kExitUsage, error.what());
  }
  for (const std::string& note : script.notes)
    std::fprintf(stderr, "hpcbatch: %s: %s\n", asked.script.c_str(), note.c_str());
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
  if (work.name.empty() && asked.script != "-")
    work.name = std::filesystem::path(file).filename().string();
  if (script.errors_go_to_output && work.standard_error.empty())
    work.standard_error = work.standard_output;
  if (script.knows_slurm) set_slurms_variables(work, around.directory);
  refuse_unset(script, *submit, around, asked.script);
  return *submit;
}

}  // namespace hpcbatch
