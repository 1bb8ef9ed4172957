// qsub: a script, or a command behind `--`, becomes a task or an array that is numbered as jobs are.
#include "batch/directives.hpp"
#include "cli/process/process.hpp"
#include "cli/tasks/submission.hpp"
#include "model/batch_number.hpp"
#include "pbs_commands/commands.hpp"
#include "pbs_commands/pbs_job.hpp"
#include "slurm_commands/commands.hpp"

#include <hpcbatch/text.hpp>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string_view>

namespace hpcbatch::pbs_commands {
namespace {

using slurm_commands::CommandFailed;
using slurm_commands::EngineJobs;
using slurm_commands::Option;
using slurm_commands::Parsed;

struct JobText {
  std::string text;
  std::string name;  ///< where nothing else is said
  std::string file;  ///< as its user wants it called
  std::vector<std::string> arguments;
};

JobText text_of(const Parsed& parsed, const std::string& directory, const Interrupt& interrupt) {
  const std::size_t before = parsed.before_dashes.value_or(parsed.words.size());
  const bool has_command = before < parsed.words.size();
  if (before > (has_command ? 0U : 1U))
    throw CommandFailed(
        "qsub: a script takes no arguments; write qsub [options] script, or qsub [options] -- "
        "command arguments",
        2);
  JobText job{"", "STDIN", directory + "/STDIN", {}};
  if (has_command) {
    job.text = "#!/bin/sh\nexec \"$@\"\n";
    job.arguments = parsed.words;
    return job;
  }
  const bool is_file = !parsed.words.empty() && parsed.words.front() != "-";
  try {
    job.text = read_input(is_file ? parsed.words.front() : "-", interrupt);
  } catch (const CommandError& error) {
    throw CommandFailed("qsub: script file:: No such file or directory\nqsub: " +
                        std::string(error.what()));
  }
  if (is_file) {
    const auto path = std::filesystem::path(directory) / parsed.words.front();
    job.file = path.lexically_normal().string();
    job.name = path.filename().string();
  }
  if (job.text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw CommandFailed("qsub: the script is empty: there is nothing to run");
  return job;
}

/// A line's words are those of the command line, too.
[[noreturn]] void complain_as_qsub(std::string text) {
  constexpr std::string_view kMark = "#PBS ";
  for (std::size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark))
    text.erase(at, kMark.size());
  throw CommandFailed("qsub: " + text);
}

/// What the command line and the script say together.
SubmitCommand submit_command(const Parsed& parsed, const JobText& job, const Surroundings& around) {
  const std::span<const Option> table = qsub_options().options;
  WordsBeside beside{{"-N", job.name}};
  for (const auto& [name, value] : parsed.options) {
    if (name == "real") continue;
    beside.last.push_back("-" + name);
    const auto option = std::find_if(
        table.begin(), table.end(), [&name = name](const Option& one) { return one.name == name; });
    if (option->takes == Option::Takes::Nothing) continue;
    // Left out, the next option would become its value.
    if (value.empty())
      throw CommandFailed("qsub: '-" + name + "': its value is empty; leave the option out");
    beside.last.push_back(value);
  }
  SubmitCommand asked;
  asked.script = job.file;
  asked.as_qsub = true;
  asked.words = {"submit"};
  asked.work.command = job.arguments;
  try {
    SubmitCommand command = with_text_of_script(asked, job.text, around, beside);
    // As qstat calls where those are that name no queue.
    if (const auto tags = command.work.said.find("tags"); tags != command.work.said.end()) {
      std::erase(tags->second, "partition=" + slurm_commands::Viewed{}.default_partition);
      if (tags->second.empty()) command.work.said.erase(tags);
    }
    return command;
  } catch (const CommandError& error) {
    complain_as_qsub(error.what());
  }
}

std::vector<Option> options_of_lines() {
  std::vector<Option> options;
  for (const batch::Directive& directive : batch::pbs_directives()) {
    const char letter = directive.name.front();
    if (std::any_of(options.begin(), options.end(),
                    [&](const Option& one) { return one.letter == letter; }))
      continue;
    const bool takes_value = directive.argument == batch::Argument::Needed;
    options.push_back({letter, directive.name.substr(0, 1),
                       takes_value ? Option::Takes::Value : Option::Takes::Nothing});
  }
  options.push_back({0, "real"});
  return options;
}

}  // namespace

const slurm_commands::OptionTable& qsub_options() {
  static const std::vector<Option> options = options_of_lines();
  static const slurm_commands::OptionTable table{"qsub", options};
  return table;
}

int qsub(const Call& call, const Session& session) {
  const Parsed parsed = parse_options(qsub_options(), call.words);
  const Surroundings around = look_around();
  const JobText job = text_of(parsed, around.directory, session.interrupt);
  const SubmitCommand command = submit_command(parsed, job, around);
  boost::json::object task =
      task_of_many(command.work, command.many, around.directory, session.interrupt);
  const boost::json::object request =
      submission_of({std::move(task)}, around, client_name(), random_key());
  EngineJobs engine(session);
  std::vector<std::string> ids;
  try {
    ids = submit_safely(engine.client(), session, request);
  } catch (const CommandError& error) {
    if (error.exit_code() == kExitNoEngine) throw;
    throw CommandFailed(std::string("qsub: Job violates queue and/or server resource limits\n") +
                            "qsub: " + error.what(),
                        kExceedsLimits);
  }
  const auto id = ids.empty() ? 0 : number_in<std::uint64_t>(ids.front()).value_or(0);
  const auto number = batch_number(ArrayId{id});
  if (id == 0 || !number) throw CommandFailed("qsub: there are no numbers left for jobs");
  if (!command.is_quiet) std::printf("%u%s.%s\n", *number, command.many.array ? "[]" : "", kServer);
  std::fflush(stdout);
  return command.wait ? slurm_commands::wait_for_end(engine, session, ids.front()) : 0;
}

}  // namespace hpcbatch::pbs_commands
