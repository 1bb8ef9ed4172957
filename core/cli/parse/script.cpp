#include "cli/parse/script.hpp"

#include "batch/pbs_options.hpp"
#include "batch/slurm_options.hpp"
#include "documents/texts.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace hpcbatch {
namespace {

using ScriptWords = std::vector<std::string>;

/// Lines of other batch systems, and the program that takes them.
struct Foreign {
  std::string_view mark, system, program;
  bool only_in_head;  ///< that system does not read them behind the first command
};
constexpr std::array kForeign{
    Foreign{"#BSUB", "LSF", "bsub", false}, Foreign{"#$ -", "Grid Engine", "qsub", false},
    Foreign{"#$\t-", "Grid Engine", "qsub", false}, Foreign{"#$-", "Grid Engine", "qsub", false},
    Foreign{"#MSUB", "Moab", "msub", true}, Foreign{"#COBALT", "Cobalt", "qsub", true},
    Foreign{"#OAR", "OAR", "oarsub", true}, Foreign{"#PJM", "PJM", "pjsub", true},
    // In either case, with or without the space (Flux's RFC 36).
    Foreign{"#flux:", "Flux", "flux batch", false}, Foreign{"# flux:", "Flux", "flux batch", false},
    Foreign{"#FLUX:", "Flux", "flux batch", false},
    Foreign{"# FLUX:", "Flux", "flux batch", false}};

void refuse_foreign(std::string_view line, bool is_in_head, const std::string& where) {
  for (const Foreign& foreign : kForeign) {
    if (!line.starts_with(foreign.mark) || (foreign.only_in_head && !is_in_head)) continue;
    const std::string_view rest = line.substr(foreign.mark.size());
    const bool is_whole =
        std::string_view("-:").find(foreign.mark.back()) != std::string_view::npos;
    if (!is_whole && !rest.empty() && rest[0] != ' ' && rest[0] != '\t') continue;
    throw std::invalid_argument(
        where + "'" + show_text(trimmed(line), 80) + "' is a line for " +
        std::string(foreign.system) +
        ", which hpcbatch does not read; say what it asks for in a line as '#HPCBATCH --cpus 2 "
        "--mem 4G --time 1h' and remove it, or hand the script to " +
        std::string(foreign.program));
  }
}

/// Words of one line, and where it stands.
struct BatchLine {
  ScriptWords words;
  std::string where;
};

class Reader {
 public:
  Reader(const std::string& file, BatchSystem of, const WordsBeside& beside)
      : system(of), file_(file), beside_(beside) {}
  void line(std::string_view text, std::size_t number) {
    where_ = file_ + ":" + std::to_string(number) + ": ";
    if (const std::string_view words = trimmed(text); !words.empty() && words.front() != '#')
      in_head_ = false;
    refuse_foreign(text, in_head_, where_);
    if (in_head_) read_ours(text);
  }
  void end() {
    if (system == BatchSystem::Slurm || (system == BatchSystem::None && !slurm_.empty())) {
      system = BatchSystem::Slurm;
      terms = read_slurm();
      if (!pbs_.empty()) terms.left_out.emplace_back("the lines #PBS");
    } else if (system == BatchSystem::Pbs || !pbs_.empty()) {
      system = BatchSystem::Pbs;
      terms = read_pbs();
    }
    options = terms.options;
    bool is_settled = false;
    for (const std::string& word : own_) {
      if (const std::string option = option_in(word); !option.empty()) {
        is_settled =
            std::find(terms.settled.begin(), terms.settled.end(), option) != terms.settled.end();
      }
      if (!is_settled) options.push_back(word);
    }
  }
  ScriptWords options;
  BatchSystem system;
  batch::Terms terms;

 private:
  void read_ours(std::string_view text) {
    const auto words_of = [&](std::string_view mark, bool may_join) -> std::optional<ScriptWords> {
      if (!text.starts_with(mark) || text.size() == mark.size()) return std::nullopt;
      const char next = text[mark.size()];
      if (next != ' ' && next != '\t' && !(may_join && next == '-')) return std::nullopt;
      return batch::split_words(text.substr(mark.size()), where_,
                                may_join ? batch::WordsOf::Sbatch : batch::WordsOf::Shell);
    };
    if (const auto words = words_of("#HPCBATCH", false))
      own_.insert(own_.end(), words->begin(), words->end());
    if (auto words = words_of("#SBATCH", true)) slurm_.push_back({std::move(*words), where_});
    if (auto words = words_of("#PBS", false)) pbs_.push_back({std::move(*words), where_});
  }
  batch::Terms read_slurm() const {
    batch::SlurmOptions reader("#SBATCH ", beside_.submit);
    reader.read(beside_.first, "");
    for (const BatchLine& line : slurm_) reader.read(line.words, line.where);
    reader.read(beside_.variables, "", batch::SaidBy::Variable);
    reader.read(beside_.last, "", batch::SaidBy::Caller);
    return reader.finish();
  }

  batch::Terms read_pbs() const {
    batch::PbsOptions reader("#PBS ");
    reader.read(beside_.first, "");
    for (const BatchLine& line : pbs_) reader.read(line.words, line.where);
    reader.read(beside_.last, "");
    return reader.finish();
  }

  const std::string& file_;
  const WordsBeside& beside_;
  std::string where_;
  bool in_head_{true};
  ScriptWords own_;
  std::vector<BatchLine> slurm_, pbs_;
};

/// Of sbatch's variables those that have another value for each task, for a script that only names
/// some.  What the user has set stays; an array's is there in an array alone.
constexpr std::string_view kTaskVariables =
    "n=${HPCBATCH_CPUS%.*}; [ \"$n\" -gt 0 ] || n=1; "
    "export SLURM_CPUS_PER_TASK=\"${SLURM_CPUS_PER_TASK:-$n}\" "
    "SLURM_CPUS_ON_NODE=\"${SLURM_CPUS_ON_NODE:-$n}\"; "
    "[ -z \"${HPCBATCH_TASK_INDEX-}\" ] || export SLURM_ARRAY_TASK_ID=\"$HPCBATCH_TASK_INDEX\"; "
    "exec \"$@\"";

ScriptWords interpreter_of(const std::string& text) {
  if (!text.starts_with("#!")) return {"/bin/sh"};
  ScriptWords words = batch::split_words(std::string_view(text).substr(2, text.find('\n') - 2), "");
  if (words.empty()) words = {"/bin/sh"};
  return words;
}

/// The program of `#!/bin/bash -e` and of `#!/usr/bin/env -S bash -e`.
std::string_view program_of(const ScriptWords& interpreter) {
  std::string_view program = interpreter.front();
  if (program.ends_with("/env")) {
    const auto next = std::find_if(interpreter.begin() + 1, interpreter.end(),
                                   [](const std::string& word) { return word != "-S"; });
    if (next != interpreter.end()) program = *next;
  }
  return program.substr(program.rfind('/') + 1);
}

bool is_posix_shell(const ScriptWords& interpreter) {
  static const std::set<std::string_view> kShells{"sh", "bash", "dash", "ksh", "zsh"};
  return kShells.contains(program_of(interpreter));
}

void put_text(Script& script, const std::string& text, const std::string& file) {
  for (std::string& variable : text_variables(text, file))
    script.options.insert(script.options.end(), {"--env", std::move(variable)});
}

/// Started as its batch system starts it.
void run_as_batch(Script& script, const Reader& reader, const std::string& text,
                  const std::string& file, const ScriptWords& arguments) {
  if (!reader.terms.interpreter.empty()) script.command = {reader.terms.interpreter};
  script.options.insert(script.options.end(), {"--env", batch_run_variable()});
  put_text(script, text, file);
  script.terms = reader.terms;
  script.system = reader.system;
  script.command = batch_command({.system = reader.system}, file, script.command, arguments);
  const std::string program = reader.system == BatchSystem::Slurm ? "sbatch" : "qsub";
  if (!reader.terms.held.empty())
    script.notes.push_back("of its lines for " + program +
                           " these hold here: " + joined(reader.terms.held, ", "));
  if (!reader.terms.left_out.empty())
    script.notes.push_back("of its lines for " + program +
                           " these are left out: " + joined(reader.terms.left_out, ", "));
}

void run_as_it_is(Script& script, const std::string& text, const std::string& file,
                  const ScriptWords& arguments) {
  if (is_posix_shell(script.command)) {
    // `-` and `--` end a shell's options.
    if (script.command.back() == "-" || script.command.back() == "--") script.command.pop_back();
    put_text(script, text, file);
    script.command.insert(script.command.end(), {"-c", run_text()});
  }
  script.names_slurm = text.find("SLURM_") != std::string::npos;
  if (script.names_slurm) {
    script.command.insert(script.command.begin(),
                          {"/bin/sh", "-c", std::string(kTaskVariables), "sh"});
  }
  script.command.push_back(file);
  script.command.insert(script.command.end(), arguments.begin(), arguments.end());
}

}  // namespace

std::string option_in(const std::string& word) {
  if (word == "--no-requeue") return "--requeue";
  return word.starts_with("--") ? word.substr(0, word.find('=')) : std::string();
}

Script read_script(const std::string& text, const std::string& file, const ScriptWords& arguments,
                   BatchSystem of, const WordsBeside& beside) {
  if (text.find("\r\n") != std::string::npos)
    throw std::invalid_argument(file +
                                " has lines that end as on Windows (CR LF), which a shell "
                                "takes for a part of them; dos2unix mends that");
  Reader reader(file, of, beside);
  std::size_t number = 0;
  for (const std::string_view line : lines_of(text)) reader.line(line, ++number);
  reader.end();
  Script script{std::move(reader.options), interpreter_of(text)};
  if (reader.system == BatchSystem::None)
    run_as_it_is(script, text, file, arguments);
  else
    run_as_batch(script, reader, text, file, arguments);
  script.variables = batch_variables_of(text);
  return script;
}

std::vector<std::string> command_of_script(std::vector<std::string> command) {
  if (is_batch_command(command)) return without_batch(command);
  constexpr std::ptrdiff_t kWrapper = 4;
  if (command.size() > kWrapper && command[2] == kTaskVariables)
    command.erase(command.begin(), command.begin() + kWrapper);
  const auto text = std::find(command.begin(), command.end(), run_text());
  if (text != command.end() && text != command.begin() && *std::prev(text) == "-c")
    command.erase(std::prev(text), std::next(text));
  return command;
}

}  // namespace hpcbatch
