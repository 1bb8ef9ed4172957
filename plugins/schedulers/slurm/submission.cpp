#include "slurm.hpp"

#include "../common/submit_answer.hpp"

#include "hpcbatch/shell_quote.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <sstream>
#include <string_view>

namespace hpcbatch::slurm {
namespace {

using submit_answer::has_one_of;

/// A login shell has usually defined `module`; a batch script of sh has not.
constexpr const char* kProfile =
    "command -v module >/dev/null 2>&1 || [ ! -r /etc/profile ] || . /etc/profile\n";

/// At the end of a batch job, or when it is cancelled, the shell, srun and the pilots all get TERM.
/// The shell must stay, or SLURM kills the pilots before they have said goodbye.  `--wait=0` and
/// `--kill-on-bad-exit=0`: a pilot that ends is no reason to end the others.
constexpr const char* kWaitForSrun = R"sh(hb_srun=$!
trap : TERM
wait "$hb_srun"; hb_code=$?
while kill -0 "$hb_srun" 2>/dev/null; do wait "$hb_srun"; hb_code=$?; done
exit "$hb_code"
)sh";

std::string cpus_of(const AllocationRequest& request) {
  return std::to_string(static_cast<long>(std::ceil(std::max(request.cpus, 1.0))));
}

/// sbatch expands patterns such as %j in the name of its log.
std::string without_patterns(const std::string& path) {
  std::string plain;
  for (const char c : path) plain.append(c == '%' ? 2 : 1, c);
  return plain;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Beginnings of the texts of slurm_strerror and strerror, and of what sbatch says of itself.

// The request may have reached the controller.
constexpr std::array<std::string_view, 5> kUnclear{
    "unexpected message received", "message send failure", "(shutdown failure)",
    "communication shutdown", "resource temporarily unavailable"};
constexpr std::array<std::string_view, 2> kLimit{"submitjoblimit", "submitjobperuserlimit"};
// An account that has used up its minutes gets none by having fewer batch jobs.
constexpr std::string_view kUsedUp = "minutes";
// Nobody was reached, or the controller said: later.
// "unable to open": the script, which had just been written, or a configuration; a file system is
// away.
constexpr std::array<std::string_view, 31> kTransient{"(connect failure)",
                                                      "communication connection failure",
                                                      "connection refused",
                                                      "no route to host",
                                                      "network is unreachable",
                                                      "in standby mode",
                                                      "authentication error",
                                                      "munge encode failed",
                                                      "unable to process configuration file",
                                                      "could not establish a configuration source",
                                                      "unable to establish controller machine",
                                                      "unable to connect to database",
                                                      "temporarily unable to accept job",
                                                      "unable to create job record",
                                                      "partition not available",
                                                      "node not available",
                                                      "nodes are busy",
                                                      "ports are in use",
                                                      "switch resources currently not available",
                                                      "presently disabled",
                                                      "submissions disabled",
                                                      "reservation is in use",
                                                      "not usable now",
                                                      "start immediately",
                                                      "immediate execution impossible",
                                                      "waiting for burst buffer",
                                                      "unable to open",
                                                      "i/o error writing",
                                                      "not available now",
                                                      "maintenance reservation",
                                                      "is busy"};
// Said by sbatch itself, before it asks anybody, or by the controller while it refuses; a reason
// that is not known there is most often one of the site's own submit plugin.
constexpr std::array<std::string_view, 9> kPermanent{"batch job submission failed",
                                                     "dos line breaks",
                                                     "does not look like a batch script",
                                                     "batch script is empty",
                                                     "invalid",
                                                     "can not be satisfied",
                                                     "sbatch: fatal: ",
                                                     "cli_filter plugin",
                                                     "spank"};

Refusal classify(const CommandOutput& output) {
  const std::string text = lower_case(output.standard_error + output.standard_output);
  constexpr int kBadOption = 255;
  const bool ended_itself =
      !output.timed_out && output.exit_code > 0 &&
      (output.exit_code < submit_answer::kSignalled || output.exit_code == kBadOption);
  if (!ended_itself || has_one_of(text, kUnclear) || has_one_of(text, submit_answer::kUnclear))
    return Refusal::Unclear;
  if (has_one_of(text, kLimit) || has_one_of(text, submit_answer::kLimit)) {
    const bool is_for_good =
        has_one_of(text, submit_answer::kPerJob) || text.find(kUsedUp) != std::string::npos;
    return is_for_good ? Refusal::Permanent : Refusal::Limit;
  }
  if (has_one_of(text, kTransient) || has_one_of(text, submit_answer::kPassing))
    return Refusal::Transient;
  const bool is_absent =
      submit_answer::is_absent(output.exit_code) && output.standard_output.empty();
  if (output.exit_code == kBadOption || is_absent || has_one_of(text, kPermanent)) {
    return Refusal::Permanent;
  }
  // sbatch says in words of its own that it failed, and prints the number where it did not.
  return text.find("sbatch: ") != std::string::npos ? Refusal::Transient : Refusal::Unclear;
}

/// Takes what is said by `--gres` out of the options.
std::string take_gres(std::vector<std::string>& options) {
  constexpr std::string_view kGres = "--gres";
  std::string said;
  std::vector<std::string> others;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const bool alone = options[i] == kGres && i + 1 < options.size();
    if (!alone && !options[i].starts_with("--gres=")) {
      others.push_back(options[i]);
      continue;
    }
    said +=
        (said.empty() ? "" : ",") + (alone ? options[++i] : options[i].substr(kGres.size() + 1));
  }
  options = std::move(others);
  return said;
}

/// Of two options sbatch heeds the last: the pilot would be without its GPUs, or without the rest.
std::string joined_gres(const AllocationRequest& request, const std::string& of_options) {
  std::string gres = of_options;
  const bool has_gpus =
      of_options.starts_with("gpu") || of_options.find(",gpu") != std::string::npos;
  if (has_gpus) return gres;
  for (const auto& [kind, count] : request.gpus) {
    gres += (gres.empty() ? "gpu:" : ",gpu:") + (kind.empty() ? "" : kind + ":") +
            std::to_string(count);
  }
  return gres;
}

/// "number;cluster"
std::optional<std::string> job_number_in(const std::string& line) {
  std::string number = line.substr(0, line.find(';'));
  return is_number(number) ? std::optional(std::move(number)) : std::nullopt;
}

}  // namespace

std::string one_line(const std::string& text) {
  std::string joined;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    for (const std::string_view prefix :
         {"sbatch: ", "squeue: ", "scancel: ", "sinfo: ", "error: ", "fatal: "}) {
      if (line.starts_with(prefix)) line.erase(0, prefix.size());
    }
    if (!line.empty()) joined += (joined.empty() ? "" : "; ") + line;
  }
  if (joined.size() > 500) joined = joined.substr(0, 497) + "...";
  return joined;
}

std::string Slurm::script(const AllocationRequest& request) const {
  std::ostringstream text;
  text << "#!/bin/sh\n# Allocation " << request.name << " of hpcbatch.\n";
  if (!request.setup.empty()) text << kProfile;
  for (const std::string& line : request.setup) text << line << "\n";
  if (request.nodes == 1) {
    text << "HPCBATCH_NODE_RANK=0; export HPCBATCH_NODE_RANK\nexec " << shell_quoted(request.pilot)
         << "\n";
    return text.str();
  }
  const std::string nodes = std::to_string(request.nodes);
  text << "srun --export=ALL --propagate=NONE --nodes=" << nodes << " --ntasks=" << nodes
       << " --ntasks-per-node=1 --cpus-per-task=" << cpus_of(request)
       << " --mpi=none --wait=0 --kill-on-bad-exit=0 " << shell_quoted(request.pilot) << " &\n"
       << kWaitForSrun;
  return text.str();
}

CommandLine Slurm::submit(const AllocationRequest& request, const std::string& script_path) const {
  // `--export=ALL` hands on the transport's environment, which is minimal; NONE, and a list too,
  // would have the node run a login shell first.  Without `--propagate=NONE` tasks would have the
  // limits of the login node, which are small.
  CommandLine command{
      .argv = {"sbatch", "--parsable", "--job-name=" + request.name, "--no-requeue",
               "--open-mode=append", "--export=ALL", "--propagate=NONE",
               "--comment=hpcbatch:" + request.name, "--chdir=" + request.directory,
               "--output=" + without_patterns(request.directory) + "/" + request.name + ".out",
               "--nodes=" + std::to_string(request.nodes), "--ntasks-per-node=1",
               "--cpus-per-task=" + cpus_of(request)}};
  auto& argv = command.argv;
  if (request.memory > 0)
    argv.push_back("--mem=" + std::to_string((request.memory + (1u << 20) - 1) >> 20) + "M");
  std::vector<std::string> options = request.options;
  const std::string gres = joined_gres(request, take_gres(options));
  if (!gres.empty()) argv.push_back("--gres=" + gres);
  if (request.walltime.count() > 0) {
    argv.push_back(
        "--time=" +
        std::to_string(std::chrono::ceil<std::chrono::minutes>(request.walltime).count()));
  }
  if (!request.partition.empty()) argv.push_back("--partition=" + request.partition);
  argv.insert(argv.end(), options.begin(), options.end());
  argv.push_back(script_path);
  return command;
}

/// The controller looks at account, QOS, partition, limits and options, and says when it would start.
CommandLine Slurm::try_submit(const AllocationRequest& request,
                              const std::string& script_path) const {
  CommandLine command = submit(request, script_path);
  command.argv.insert(command.argv.begin() + 1, "--test-only");
  return command;
}

Result<std::string> Slurm::read_try_submit(const CommandOutput& output) const {
  // It speaks on its standard error, also where all is well.
  std::string text = one_line(output.standard_error + output.standard_output);
  if (!output.timed_out && output.exit_code == 0)
    return text.empty() ? "sbatch --test-only takes it" : text;
  if (output.timed_out)
    return Error{Error::Kind::Transient, "sbatch --test-only: no answer in time"};
  if (text.empty()) text = "exit " + std::to_string(output.exit_code);
  const bool is_final = classify(output) == Refusal::Permanent;
  return Error{is_final ? Error::Kind::Rejected : Error::Kind::Transient,
               "sbatch --test-only: " + text};
}

/// sbatch(1), --exclude; none where there is no name of a node.
std::vector<std::string> Slurm::options_without(const std::vector<std::string>& nodes) const {
  std::string list;
  for (const std::string& node : nodes) {
    const bool is_name = !node.empty() && std::all_of(node.begin(), node.end(), [](char letter) {
      return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' ||
             letter == '_' || letter == '.';
    });
    if (is_name) list += (list.empty() ? "" : ",") + node;
  }
  if (list.empty()) return {};
  return {"--exclude=" + list};
}

/// The number alone is success.  A refusal counts as one only where nothing can have been accepted:
/// a lost answer means a batch job as often as not (measured: it was there after "Socket timed
/// out").
std::variant<std::string, SubmitRefused> Slurm::read_submit(const CommandOutput& output) const {
  return submit_answer::read(output, {.program = "sbatch",
                                      .number_in = job_number_in,
                                      .one_line = one_line,
                                      .classify = classify});
}

}  // namespace hpcbatch::slurm
