// sbatch: a script, or what --wrap says, becomes a task or an array that is numbered as jobs are.
#include "batch/directives.hpp"
#include "cli/client/engine_client.hpp"
#include "cli/process/process.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/tasks/submission.hpp"
#include "documents/moments.hpp"
#include "slurm_commands/commands.hpp"
#include "slurm_commands/options.hpp"
#include "slurm_commands/times.hpp"

#include <hpcbatch/text.hpp>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>
#include <utility>

namespace hpcbatch::slurm_commands {
namespace {

namespace json = boost::json;

/// What sbatch takes from its environment (sbatch(1), INPUT ENVIRONMENT VARIABLES).
constexpr std::array<std::pair<const char*, const char*>, 32> kVariables{
    {{"SBATCH_ACCOUNT", "account"},
     {"SBATCH_ARRAY_INX", "array"},
     {"SBATCH_CLUSTERS", "clusters"},
     {"SBATCH_CONSTRAINT", "constraint"},
     {"SBATCH_CPUS_PER_GPU", "cpus-per-gpu"},
     {"SBATCH_DELAY_BOOT", "delay-boot"},
     {"SBATCH_DISTRIBUTION", "distribution"},
     {"SBATCH_ERROR", "error"},
     {"SBATCH_EXCLUSIVE", "exclusive"},
     {"SBATCH_EXPORT", "export"},
     {"SBATCH_GPUS", "gpus"},
     {"SBATCH_GPUS_PER_NODE", "gpus-per-node"},
     {"SBATCH_GPUS_PER_TASK", "gpus-per-task"},
     {"SBATCH_GRES", "gres"},
     {"SBATCH_HINT", "hint"},
     {"SBATCH_INPUT", "input"},
     {"SBATCH_JOB_NAME", "job-name"},
     {"SBATCH_MEM_PER_CPU", "mem-per-cpu"},
     {"SBATCH_MEM_PER_GPU", "mem-per-gpu"},
     {"SBATCH_MEM_PER_NODE", "mem"},
     {"SBATCH_NO_REQUEUE", "no-requeue"},
     {"SBATCH_OPEN_MODE", "open-mode"},
     {"SBATCH_OUTPUT", "output"},
     {"SBATCH_PARTITION", "partition"},
     {"SBATCH_PROFILE", "profile"},
     {"SBATCH_QOS", "qos"},
     {"SBATCH_REQUEUE", "requeue"},
     {"SBATCH_RESERVATION", "reservation"},
     {"SBATCH_SIGNAL", "signal"},
     {"SBATCH_THREADS_PER_CORE", "threads-per-core"},
     {"SBATCH_TIMELIMIT", "time"},
     {"SBATCH_WCKEY", "wckey"}}};

/// Options that sbatch itself heeds, wherever they are said.
bool is_of_command(std::string_view name) {
  constexpr std::array<std::string_view, 9> kOwn{
      "wrap", "wait", "test-only", "verbose", "version", "help", "usage", "real", "ignore-pbs"};
  return std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end();
}

struct Batch {
  std::string text;
  std::string name;  ///< of the job where nothing else is said
  std::string file;  ///< as its user wants it called
  std::vector<std::string> arguments;
};

Batch batch_of(const Parsed& parsed, const std::string& directory, const Interrupt& interrupt) {
  if (const auto wrap = parsed.value("wrap")) {
    if (!parsed.words.empty())
      throw CommandFailed("sbatch: error: Script arguments not permitted with --wrap option");
    return {"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n" + *wrap + "\n",
            "wrap",
            directory + "/slurm_script",
            {}};
  }
  Batch batch;
  const bool is_file = !parsed.words.empty() && parsed.words.front() != "-";
  try {
    batch.text = read_input(is_file ? parsed.words.front() : "-", interrupt);
  } catch (const CommandError& error) {
    throw CommandFailed("sbatch: error: Unable to open file " +
                        (is_file ? parsed.words.front() : "standard input"));
  }
  batch.name = "sbatch";
  batch.file = directory + "/slurm_script";
  if (is_file) {
    const auto path = std::filesystem::path(directory) / parsed.words.front();
    batch.file = path.lexically_normal().string();
    batch.name = path.filename().string();
  }
  if (!parsed.words.empty()) batch.arguments.assign(parsed.words.begin() + 1, parsed.words.end());
  if (batch.text.empty()) throw CommandFailed("sbatch: error: Batch script is empty!");
  if (!batch.text.starts_with("#!"))
    throw CommandFailed(
        "sbatch: error: This does not look like a batch script.  The first\n"
        "sbatch: error: line must start with #! followed by the path to an interpreter.\n"
        "sbatch: error: For instance: #!/bin/sh");
  return batch;
}

/// A line's words are those of the command line, too.
[[noreturn]] void complain_as_sbatch(std::string text) {
  constexpr std::string_view kMark = "#SBATCH ";
  for (std::size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark))
    text.erase(at, kMark.size());
  throw CommandFailed("sbatch: error: " + text);
}

[[noreturn]] void refused(const std::string& why) {
  throw CommandFailed("sbatch: error: Batch job submission failed: " + why);
}

/// What waits for a moment that is over would end before it starts.
void check_deadline(const std::string& text) {
  const double now = std::floor(now_in_seconds());
  if (const auto deadline = parse_coming_moment(text, now); deadline && *deadline < now)
    refused("Requested time limit is invalid (missing or exceeds some limit)");
}

/// What the command line, the environment and the script say together.
SubmitCommand command_of(const Call& call, const Parsed& parsed, const Batch& batch,
                         const Surroundings& around) {
  WordsBeside beside{{sbatch_word("job-name", batch.name)}};
  for (const auto& [name, option] : kVariables) {
    const std::string value = variable(call, name);
    if (!value.empty() && !is_of_command(option))
      beside.variables.push_back(sbatch_word(option, value));
  }
  for (const auto& [name, value] : parsed.options) {
    if (!is_of_command(name)) beside.last.push_back(sbatch_word(name, value));
  }
  SubmitCommand asked;
  asked.script = batch.file;
  asked.as_sbatch = true;
  asked.words = {"submit"};
  asked.work.command = batch.arguments;
  try {
    SubmitCommand command = with_text_of_script(asked, batch.text, around, beside);
    check_deadline(command.work.one("deadline"));
    // As squeue and sinfo call where those are that name none.
    if (const auto tags = command.work.said.find("tags"); tags != command.work.said.end()) {
      std::erase(tags->second, "partition=" + Viewed{}.default_partition);
      if (tags->second.empty()) command.work.said.erase(tags);
    }
    return command;
  } catch (const CommandError& error) {
    complain_as_sbatch(error.what());
  }
}

int try_only(EngineJobs& engine, const json::object& request) {
  const json::object answer = engine.client().post("/v1/tasks/try", request);
  const json::array* trials = array_at(answer, "tasks");
  for (std::size_t i = 0; trials != nullptr && i < trials->size(); ++i) {
    const json::object& trial = trials->at(i).as_object();
    if (const std::string why = text_at(trial, "refusal"); !why.empty())
      throw CommandFailed(
          "allocation failure: Requested node configuration is not available\n"
          "sbatch: error: " +
          why);
  }
  std::fprintf(stderr,
               "sbatch: Job 2000000000 to start at %s using 1 processors on nodes hpcbatch in "
               "partition hpcbatch\n",
               moment(now_in_seconds(), "").c_str());
  return 0;
}

}  // namespace

int wait_for_end(EngineJobs& engine, const Session& session, const std::string& id) {
  constexpr int kSeconds = 30;
  constexpr std::chrono::seconds kAnswer{60};
  const std::string question =
      json::serialize(json::object{{"ids", json::array{json::string(id)}}, {"timeout", kSeconds}});
  StatusLine status;
  // The job goes on where the engine dies, and another engine knows it.
  PatientClient patient(engine.client(), session, status);
  while (!flag_at(patient.post("/v1/tasks/wait", question, kAnswer), "done")) {
  }
  return highest_exit_code(engine.client(), id);
}

std::string sbatch_word(const std::string& name, const std::string& value) {
  using batch::Argument;
  const std::span<const batch::Directive> known = batch::slurm_directives();
  const auto directive = std::find_if(
      known.begin(), known.end(), [&](const batch::Directive& one) { return one.name == name; });
  const Argument argument = directive == known.end() ? Argument::Optional : directive->argument;
  // Variables of those that may stand alone have 1, or whatever else their user found clear.
  const bool is_a_yes = value == "1" || value == "yes" || value == "true";
  const bool stands_alone = argument == Argument::None || value.empty() ||
                            (name == "exclusive" && (is_a_yes || value == "exclusive"));
  std::string word = "--" + name;
  if (argument == Argument::Needed || !stands_alone) word.append("=").append(value);
  return word;
}

int sbatch(const Call& call, const Session& session) {
  const Parsed parsed = parse_options(sbatch_options(), call.words);
  const Surroundings around = look_around();
  const Batch batch = batch_of(parsed, around.directory, session.interrupt);
  const SubmitCommand command = command_of(call, parsed, batch, around);
  json::object task = task_of_many(command.work, command.many, around.directory, session.interrupt);
  EngineJobs engine(session);
  const json::object request =
      submission_of({std::move(task)}, around, client_name(), random_key());
  if (parsed.has("test-only") || command.dry_run) return try_only(engine, request);
  engine.client();
  std::vector<std::string> ids;
  try {
    ids = submit_safely(engine.client(), session, request);
  } catch (const CommandError& error) {
    if (error.exit_code() == kExitNoEngine) throw;
    refused(error.what());
  }
  if (ids.empty()) refused("the engine named no task");
  const auto number = batch_number(ArrayId{number_in<std::uint64_t>(ids.front()).value_or(0)});
  if (!number) refused("there are no numbers left for jobs");
  if (!command.is_quiet)
    std::printf("%s%u\n", command.is_parsable ? "" : "Submitted batch job ", *number);
  std::fflush(stdout);
  const bool waits = parsed.has("wait") || command.wait || !variable(call, "SBATCH_WAIT").empty();
  return waits ? wait_for_end(engine, session, ids.front()) : 0;
}

}  // namespace hpcbatch::slurm_commands
