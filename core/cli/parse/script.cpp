#include "cli/parse/script.hpp"

#include "cli/parse/spelled.hpp"
#include "documents/texts.hpp"
#include "model/quantities.hpp"

#include <hpcbatch/batch_time.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace hpcbatch {
namespace {

/// What the system takes as one argument (MAX_ARG_STRLEN of Linux), less what is put before it.
constexpr std::size_t kLargestText = std::size_t{120} << 10;

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r"), text.size());
  const std::size_t end = text.find_last_not_of(" \t\r");
  return end == std::string_view::npos ? std::string_view{} : text.substr(begin, end + 1 - begin);
}

/// As a shell would: blanks part words but within quotation marks; a comment ends them.
std::vector<std::string> split_words(std::string_view text, const std::string& where) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      if (in_word) words.push_back(std::exchange(word, {}));
      in_word = false;
    } else if (c == '#' && !in_word) {
      break;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0) throw std::invalid_argument(where + "a quotation mark is not closed");
  if (in_word) words.push_back(word);
  return words;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// SLURM counts in megabytes where no unit is said.
std::string memory_of(const std::string& text) {
  return number_in(text) ? text + "M" : text;
}

/// `%a` and `%j` of a file's name; nothing where it asks for more.
std::optional<std::string> pattern_as_path(std::string text) {
  for (const auto& [theirs, ours] : {std::pair<std::string_view, std::string_view>{"%A_%a", "{id}"},
                                     {"%A.%a", "{id}"},
                                     {"%j", "{id}"},
                                     {"%J", "{id}"},
                                     {"%a", "{index}"}}) {
    for (std::size_t at = text.find(theirs); at != std::string::npos; at = text.find(theirs))
      text.replace(at, theirs.size(), ours);
  }
  if (text.find('%') != std::string::npos) return std::nullopt;
  return text;
}

using ScriptWords = std::vector<std::string>;
/// Options of ours that mean the same; nothing where it cannot be told, which is refused.
using Meaning = std::function<std::optional<ScriptWords>(const std::string& value)>;

Meaning same(const std::string& option) {
  return [option](const std::string& value) { return ScriptWords{option, value}; };
}

std::optional<ScriptWords> only_one(const std::string& value) {
  if (value != "1") return std::nullopt;
  return ScriptWords{};
}

std::optional<ScriptWords> gpus_of(const std::string& value) {
  if (value == "gpu") return ScriptWords{"--gpus", "1"};
  const std::string count = value.starts_with("gpu:") ? value.substr(4) : value;
  if (count.find(',') != std::string::npos || count.empty()) return std::nullopt;
  return ScriptWords{"--gpus", count};
}

std::optional<ScriptWords> file_as(const std::string& option, const std::string& value) {
  const auto path = pattern_as_path(value);
  if (!path) return std::nullopt;
  return ScriptWords{option, *path};
}

/// The environment goes along, as with ALL.
std::optional<ScriptWords> environment_of(const std::string& value) {
  ScriptWords words;
  bool has_all = false;
  for (std::size_t at = 0; at <= value.size();) {
    const std::size_t end = std::min(value.find(',', at), value.size());
    const std::string one = value.substr(at, end - at);
    at = end + 1;
    if (one == "ALL") {
      has_all = true;
    } else if (one.find('=') != std::string::npos) {
      words.insert(words.end(), {"--env", one});
    } else {
      return std::nullopt;
    }
  }
  return has_all ? std::optional(words) : std::nullopt;
}

struct SbatchOption {
  char letter;  ///< 0: it has none
  std::string_view name;
  Meaning meaning;
};

// NOLINTNEXTLINE(readability-function-size)
const std::vector<SbatchOption>& known_options() {
  static const std::vector<SbatchOption> all{
      {'c', "cpus-per-task", same("--cpus")},
      {0, "mem",
       [](const std::string& value) {
         return ScriptWords{"--mem", memory_of(value)};
       }},
      {'t', "time",
       [](const std::string& value) -> std::optional<ScriptWords> {
         const auto time = slurm_time(value);
         if (!time || time->count() == 0) return std::nullopt;
         return ScriptWords{"--time", std::to_string(time->count()) + "s"};
       }},
      {'a', "array", same("--array")},
      {'J', "job-name", same("--name")},
      {'o', "output", [](const std::string& value) { return file_as("--stdout", value); }},
      {'e', "error", [](const std::string& value) { return file_as("--stderr", value); }},
      {'i', "input", [](const std::string& value) { return file_as("--stdin", value); }},
      {0, "export", environment_of},
      {0, "open-mode",
       [](const std::string& value) {
         return value == "truncate" ? std::optional(ScriptWords{}) : std::nullopt;
       }},
      {'A', "account", same("--account")},
      {'q', "qos", same("--qos")},
      {'p', "partition", same("--partition")},
      {'C', "constraint", same("--constraint")},
      {0, "reservation", same("--reservation")},
      {'D', "chdir", same("--cwd")},
      {'G', "gpus", gpus_of},
      {0, "gpus-per-task", gpus_of},
      {0, "gpus-per-node", gpus_of},
      {0, "gres",
       [](const std::string& value) {
         return value.starts_with("gpu") ? gpus_of(value) : std::nullopt;
       }},
      {0, "tmp",
       [](const std::string& value) {
         return ScriptWords{"--disk", memory_of(value)};
       }},
      {'N', "nodes", only_one},
      {'n', "ntasks", only_one},
      {0, "ntasks-per-node", only_one}};
  return all;
}

/// Those of sbatch that change nothing of what is computed.
bool may_be_left_out(std::string_view name) {
  static const std::set<std::string_view> kLeftOut{
      "mail-type", "mail-user", "comment", "nice",     "requeue",       "no-requeue",
      "exclusive", "parsable",  "quiet",   "verbose",  "hint",          "get-user-env",
      "wckey",     "profile",   "wait",    "time-min", "oversubscribe", "kill-on-invalid-dep",
      "delay-boot"};
  return kLeftOut.contains(name);
}

/// Lines of other batch systems, and the program that takes them.
struct Foreign {
  std::string_view mark, system, program;
  bool only_in_head;  ///< that system does not read them behind the first command
};
constexpr std::array kForeign{
    Foreign{"#PBS", "PBS", "qsub", true}, Foreign{"#BSUB", "LSF", "bsub", false},
    Foreign{"#$ -", "Grid Engine", "qsub", false}, Foreign{"#$\t-", "Grid Engine", "qsub", false},
    Foreign{"#$-", "Grid Engine", "qsub", false}, Foreign{"#MSUB", "Moab", "msub", true},
    Foreign{"#COBALT", "Cobalt", "qsub", true}, Foreign{"#OAR", "OAR", "oarsub", true},
    Foreign{"#PJM", "PJM", "pjsub", true},
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

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}
  void line(std::string_view text, std::size_t number) {
    where_ = file_ + ":" + std::to_string(number) + ": ";
    if (const std::string_view words = trimmed(text); !words.empty() && words.front() != '#')
      in_head_ = false;
    refuse_foreign(text, in_head_, where_);
    if (in_head_) read_ours(text);
  }
  void end() { put_memory_per_cpu(); }
  ScriptWords options;
  std::string read, left_out;

 private:
  void read_ours(std::string_view text) {
    for (const std::string_view ours : {"#HPCBATCH", "#SBATCH"}) {
      if (!text.starts_with(ours) || text.size() == ours.size()) continue;
      if (text[ours.size()] != ' ' && text[ours.size()] != '\t') continue;
      const ScriptWords words = split_words(text.substr(ours.size()), where_);
      if (ours == "#SBATCH")
        read_sbatch(words);
      else
        options.insert(options.end(), words.begin(), words.end());
    }
  }
  void read_sbatch(const ScriptWords& words) {
    for (std::size_t at = 0; at < words.size();) read_option(words, at);
  }
  void read_option(const ScriptWords& words, std::size_t& at) {
    const std::string& word = words[at++];
    std::string name, value;
    bool has_value = false;
    if (word.starts_with("--")) {
      const std::size_t equals = std::min(word.find('='), word.size());
      name = word.substr(2, equals - 2);
      has_value = equals < word.size();
      if (has_value) value = word.substr(equals + 1);
    } else if (word.size() >= 2 && word[0] == '-') {
      name = long_name(word[1]);
      has_value = word.size() > 2;
      value = word.substr(2);
    } else {
      throw std::invalid_argument(where_ + "'" + word + "' is no option of sbatch");
    }
    if (!has_value && at < words.size() && !words[at].starts_with('-')) value = words[at++];
    take(word, name, value);
  }
  static std::string long_name(char letter) {
    for (const SbatchOption& option : known_options()) {
      if (option.letter == letter) return std::string(option.name);
    }
    return std::string(1, letter);
  }
  void take(const std::string& word, const std::string& name, const std::string& value) {
    const auto known =
        std::find_if(known_options().begin(), known_options().end(),
                     [&](const SbatchOption& option) { return option.name == name; });
    if (known == known_options().end() && may_be_left_out(name)) {
      left_out += (left_out.empty() ? "" : ", ") + word;
      return;
    }
    if (name == "mem-per-cpu") {
      const auto bytes = parse_size(memory_of(value));
      if (bytes) {
        memory_per_cpu_ = *bytes;
        read += (read.empty() ? "" : ", ") + word + " as --mem";
        return;
      }
    }
    const auto meaning = known == known_options().end() ? std::nullopt : known->meaning(value);
    if (!meaning) {
      throw std::invalid_argument(
          where_ + "'#SBATCH " + word +
          (value.empty() || word.ends_with(value) ? "" : " " + value) +
          "' has nothing here that means the same; write a line #HPCBATCH with what you need, or "
          "hand the script to sbatch");
    }
    options.insert(options.end(), meaning->begin(), meaning->end());
    std::string ours;
    for (const std::string& one : *meaning) ours += (ours.empty() ? "" : " ") + one;
    read += (read.empty() ? "" : ", ") + word + (ours.empty() ? "" : " as " + ours);
  }

  /// For as many cpus as are asked for in the end.
  void put_memory_per_cpu() {
    if (memory_per_cpu_ == 0) return;
    double cpus = 1;
    for (std::size_t at = 0; at + 1 < options.size(); ++at)
      if (options[at] == "--cpus") cpus = parse_cpus(options[at + 1]);
    options.insert(options.end(),
                   {"--mem", std::to_string(std::llround(static_cast<double>(memory_per_cpu_) *
                                                         std::max(1.0, cpus)))});
  }

  const std::string& file_;
  std::string where_;
  bool in_head_{true};
  std::uint64_t memory_per_cpu_{0};
};

/// Of sbatch's variables those that have another value for each task.  What the user has set
/// stays; an array's is there in an array alone.
constexpr std::string_view kTaskVariables =
    "n=${HPCBATCH_CPUS%.*}; [ \"$n\" -gt 0 ] || n=1; "
    "export SLURM_CPUS_PER_TASK=\"${SLURM_CPUS_PER_TASK:-$n}\" "
    "SLURM_CPUS_ON_NODE=\"${SLURM_CPUS_ON_NODE:-$n}\"; "
    "[ -z \"${HPCBATCH_TASK_INDEX-}\" ] || export SLURM_ARRAY_TASK_ID=\"$HPCBATCH_TASK_INDEX\"; "
    "exec \"$@\"";

ScriptWords interpreter_of(const std::string& text) {
  if (!text.starts_with("#!")) return {"/bin/sh"};
  ScriptWords words = split_words(std::string_view(text).substr(2, text.find('\n') - 2), "");
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

/// From its own variable, in which nothing is replaced: braces of a script are the script's.
constexpr const char* kRunText =
    "hpcbatch_text=$HPCBATCH_SCRIPT; unset HPCBATCH_SCRIPT; eval \"$hpcbatch_text\"";

}  // namespace

Script read_script(const std::string& text, const std::string& file, const ScriptWords& arguments) {
  if (text.find("\r\n") != std::string::npos)
    throw std::invalid_argument(file +
                                " has lines that end as on Windows (CR LF), which a shell "
                                "takes for a part of them; dos2unix mends that");
  Reader reader(file);
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    reader.line(line, ++number);
  }
  reader.end();
  Script script{std::move(reader.options), interpreter_of(text)};
  const bool is_slurms = !reader.read.empty() || !reader.left_out.empty();
  script.errors_go_to_output = is_slurms;
  if (is_posix_shell(script.command)) {
    if (text.size() > kLargestText)
      throw std::invalid_argument(file + " has " + std::to_string(text.size()) +
                                  " bytes, more than the system hands to a shell; submit it as a "
                                  "command: hpcbatch submit -- sh " +
                                  file);
    // `-` and `--` end a shell's options.
    if (script.command.back() == "-" || script.command.back() == "--") script.command.pop_back();
    script.options.insert(script.options.end(), {"--env", "HPCBATCH_SCRIPT=" + text});
    script.command.insert(script.command.end(), {"-c", kRunText});
  }
  script.variables = batch_variables_of(text);
  script.knows_slurm = is_slurms || text.find("SLURM_") != std::string::npos;
  if (script.knows_slurm) {
    script.command.insert(script.command.begin(),
                          {"/bin/sh", "-c", std::string(kTaskVariables), "sh"});
  }
  script.command.push_back(file);
  script.command.insert(script.command.end(), arguments.begin(), arguments.end());
  if (!reader.read.empty())
    script.notes.push_back("of its lines for sbatch these hold here: " + reader.read);
  if (!reader.left_out.empty())
    script.notes.push_back("of its lines for sbatch these are left out: " + reader.left_out);
  return script;
}

std::vector<std::string> command_of_script(std::vector<std::string> command) {
  constexpr std::ptrdiff_t kWrapper = 4;
  if (command.size() > kWrapper && command[2] == kTaskVariables)
    command.erase(command.begin(), command.begin() + kWrapper);
  const auto text = std::find(command.begin(), command.end(), kRunText);
  if (text != command.end() && text != command.begin() && *std::prev(text) == "-c")
    command.erase(std::prev(text), std::next(text));
  return command;
}

}  // namespace hpcbatch
