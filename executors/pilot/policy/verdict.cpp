#include "pilot/policy/verdict.hpp"

#include "pilot/base/log_line.hpp"
#include "wire/outbox.hpp"

#include <sys/wait.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string_view>

namespace hpcbatch::pilot {
namespace {

// What Apptainer and Singularity, and Podman and Docker, exit with when they themselves fail.
constexpr int kContainerFailed = 255;
constexpr int kContainerNotRun = 125;
constexpr int kShellsSignal = 128;
constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;

std::string signal_name(int signal) {
  const char* abbreviation = ::sigabbrev_np(signal);
  return abbreviation == nullptr ? "signal " + std::to_string(signal)
                                 : std::string("SIG") + abbreviation;
}

std::string memory_message(const EndFacts& facts) {
  std::string text = "it used more memory than it may";
  if (facts.memory_limit != 0) text += ": the limit is " + in_words(facts.memory_limit);
  if (facts.peak_memory != 0) text += ", its peak was " + in_words(facts.peak_memory);
  return text;
}

/// What the program itself ended with, where something in its container tells.
void take_ends(const EndFacts& facts, Verdict& verdict) {
  if (WIFSIGNALED(facts.status)) verdict.signal = WTERMSIG(facts.status);
  if (WIFEXITED(facts.status)) verdict.exit_code = WEXITSTATUS(facts.status);
  if (!facts.container || !facts.container->reports) return;
  const ContainerReport& report = facts.container->report;
  using Said = ContainerReport::Said;
  const bool is_exit = report.said == Said::Exited;
  if (is_exit || report.said == Said::Signalled) {
    verdict.exit_code = is_exit ? report.value : 0;
    verdict.signal = is_exit ? 0 : report.value;
  } else if (report.said == Said::Begun && verdict.exit_code > kShellsSignal) {
    // Killed together with who would have told.
    verdict.signal = verdict.exit_code - kShellsSignal;
    verdict.exit_code = 0;
  }
}

/// Empty: the container itself did its part.
std::string container_trouble(const EndFacts& facts, const Verdict& verdict) {
  if (!facts.container) return {};
  const ContainerEnd& end = *facts.container;
  using Said = ContainerReport::Said;
  const std::string how = verdict.signal != 0
                              ? "was ended by " + signal_name(verdict.signal)
                              : "ended with exit " + std::to_string(verdict.exit_code);
  constexpr const char* kSee = ": see the end of its standard error";
  if (end.reports) {
    if (end.report.said == Said::Nothing)
      return end.runtime + " " + how + " before the task's program began in the container" + kSee;
    if (end.report.said == Said::Begun && verdict.signal == 0)
      return end.runtime + " " + how + " while the task's program ran in the container" + kSee;
    return {};
  }
  const bool is_its_own =
      verdict.exit_code == kContainerFailed || verdict.exit_code == kContainerNotRun;
  return verdict.signal == 0 && is_its_own ? end.runtime + " " + how + kSee : std::string();
}

}  // namespace

void set_log_lost(wire::Result& result) {
  result.mutable_log()->set_truncated(true);
  result.mutable_log()->set_lost(true);
}

void set_output_lost(wire::Result& result) {
  set_log_lost(result);
  if (failure_of(result) != Failure::Ok) return;
  set_failure(result, Failure::WorkspaceLost);
  result.set_message("exit 0, but its output could not be written to the workspace");
}

std::string in_words(std::uint64_t bytes) {
  constexpr const char* kSteps[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t step = 0;
  while (value >= 1023.95 && step + 1 < std::size(kSteps)) {
    value /= 1024;
    ++step;
  }
  char text[40];
  std::snprintf(text, sizeof text, step == 0 ? "%.0f %s" : "%.1f %s", value, kSteps[step]);
  return text;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return "it was ended by " + signal_name(WTERMSIG(status));
  return "it ended with exit code " + std::to_string(WEXITSTATUS(status));
}

Verdict verdict_of(const EndFacts& facts) {
  Verdict verdict;
  take_ends(facts, verdict);
  const std::string trouble = container_trouble(facts, verdict);
  // A process of a pipe may have been killed and the last one have ended well: the result is not to
  // be trusted.
  if (facts.memory_kills > 0 && facts.stopped_for.value_or(Failure::OomTask) == Failure::OomTask) {
    verdict.failure = Failure::OomTask;
    verdict.message = memory_message(facts);
  } else if (facts.stopped_for) {
    verdict.failure = *facts.stopped_for;
    verdict.message = facts.stop_message;
  } else if (!trouble.empty()) {
    verdict.failure = Failure::ContainerFailed;
    verdict.message = trouble;
  } else if (facts.container && facts.container->report.said == ContainerReport::Said::CannotRun) {
    return verdict_of(Spawned{-1, Spawned::Step::Program, facts.container->report.value},
                      facts.program, "", "of the image");
  } else if (verdict.signal != 0) {
    verdict.failure = Failure::ToolSignal;
    verdict.message = "it was ended by " + signal_name(verdict.signal);
  } else if (verdict.exit_code == 0) {
    verdict.failure = Failure::Ok;
  } else if (facts.disk_is_full) {
    verdict.failure = Failure::DiskTask;
    verdict.message =
        "exit " + std::to_string(verdict.exit_code) + ", and its directory's file system is full";
  } else {
    verdict.failure = Failure::ToolFailed;
    verdict.message = "exit " + std::to_string(verdict.exit_code);
  }
  return verdict;
}

namespace {

/// What a shell does and no program; with where it stands in a line.
bool is_a_shells_own(std::string_view word) {
  static constexpr std::array<std::string_view, 21> kWords{
      "cd", "export", "source", ".", "alias",  "ulimit", "umask", "set",  "unset", "eval",   "exec",
      "if", "for",    "while",  "{", "module", "local",  "shopt", "trap", "read",  "declare"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

/// `FOO=1` before a program's name.
bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

/// Of a program that is not there: what was meant for a shell; empty: nothing that looks so.
std::string meant_for_a_shell(const std::string& program) {
  const std::size_t blank = program.find(' ');
  if (blank != std::string::npos || program.find_first_of("|<>;&") != std::string::npos)
    return "; the command is one word here, and a line for a shell is: sh -c '" +
           (program.find('\'') == std::string::npos ? shown(program) : "LINE") + "'";
  if (is_a_shells_own(program))
    return "; it is a word of shells and no program: sh -c '" + program + " ...'" +
           (program == "cd" ? ", or --cwd DIR" : "");
  if (is_assignment(program))
    return "; a variable is set by --env " + shown(program) +
           ", or in a line for a shell: sh -c '" + shown(program) + " ...'";
  return "";
}

}  // namespace

Verdict verdict_of(const Spawned& spawned, const std::string& program, const std::string& directory,
                   const std::string& search) {
  const std::string why = std::strerror(spawned.error);
  switch (spawned.failed_at) {
    case Spawned::Step::None:
    case Spawned::Step::ControlGroup:  // it is started without one then
      break;
    case Spawned::Step::Start:
      return {Failure::EngineError, 0, 0, "the node could not start a process: " + why};
    case Spawned::Step::Directory:
      return {Failure::StageInFailed, 0, 0,
              "cannot enter its directory " + shown(directory) + ": " + why};
    case Spawned::Step::Program: {
      const bool absent = spawned.error == ENOENT || spawned.error == ENOTDIR;
      std::string message = "cannot run '" + shown(program) + "': " + why;
      if (const std::string hint = absent ? meant_for_a_shell(program) : ""; !hint.empty())
        message += hint;
      else if (absent && program.find('/') == std::string::npos)
        message += " in PATH " + shown(search);
      else if (absent)
        message += " (or the interpreter that it names)";
      if (spawned.error == ENOEXEC)
        message += "; it is empty, or a program of another kind of machine";
      return {Failure::ToolFailed, absent ? kNotFound : kNotExecutable, 0, message};
    }
  }
  return {};
}

}  // namespace hpcbatch::pilot
