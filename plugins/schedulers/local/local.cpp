// Scheduler `local`: pilots as processes of this machine, with no daemon behind them.
//
//   directory: /run/me/pilots   # where it remembers them; else a directory of the user's own in
//   /tmp
#include "shell_texts.hpp"

#include "hpcbatch/keys.hpp"

#include "hpcbatch/scheduler.hpp"
#include "hpcbatch/shell_quote.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>

#include <sstream>

namespace hpcbatch {
namespace {

std::string read_directory(const char* config_yaml) {
  const Keys keys(config_yaml, {"directory"});
  const auto directory = keys.text("directory");
  if (directory && !directory->starts_with('/')) keys.fail("directory", "must be an absolute path");
  return directory.value_or("");
}

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

std::vector<std::vector<std::string>> words_by_line(const std::string& text) {
  std::vector<std::vector<std::string>> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    lines.emplace_back(std::istream_iterator<std::string>(words),
                       std::istream_iterator<std::string>());
  }
  return lines;
}

/// Nothing where the words are none of ours.
std::optional<BatchJob> read_job(const std::vector<std::string>& words) {
  BatchJob job;
  if (words.size() == 2 && words[0] == "starting") {
    job.name = words[1];
    return job;
  }
  if (words.size() != 5) return std::nullopt;
  job.name = words[1];
  job.number = words[2];
  if (words[0] == "running") {
    job.state = BatchState::Running;
    if (words[3] != "-") {
      const auto left = number_in<long>(words[3]);
      if (!left) return std::nullopt;
      job.time_left = std::chrono::seconds(*left);
    }
    job.nodes = {words[4]};
    return job;
  }
  if (words[0] != "ended") return std::nullopt;
  job.state = BatchState::Ended;
  job.reason = words[3] == "lost" ? "its process is gone" : "exit " + words[4];
  if (words[3] == "completed") {
    job.cause = EndCause::Completed;
  } else if (words[3] == "timeout") {
    job.cause = EndCause::Timeout;
  } else if (words[3] == "cancelled") {
    job.cause = EndCause::Cancelled;
  } else if (words[3] == "failed" || words[3] == "lost") {
    job.cause = EndCause::Failed;
  } else {
    return std::nullopt;
  }
  return job;
}

class Local final : public Scheduler {
 public:
  explicit Local(const char* config_yaml)
      : common_("hb_dir=" + shell_quoted(read_directory(config_yaml)) + local::kCommon) {}

  std::string script(const AllocationRequest& request) const override {
    if (request.nodes != 1) {
      throw std::runtime_error("the scheduler 'local' has one node, " +
                               std::to_string(request.nodes) + " were asked for");
    }
    std::ostringstream text;
    text << "#!/bin/sh\n# An allocation of hpcbatch on this machine.\n"
         << "hb_name=" << shell_quoted(request.name) << " hb_walltime=" << request.walltime.count()
         << " hb_log=" << shell_quoted(request.directory + "/" + request.name + ".out") << "\n"
         << common_ << local::kBegin << "cd " << shell_quoted(request.directory) << "\n"
         << "export HPCBATCH_NODE_RANK=0\n";
    for (const std::string& line : request.setup) text << line << "\n";
    text << "set -- " << shell_quoted(request.pilot) << "\n" << local::kEnd;
    return text.str();
  }

  CommandLine submit(const AllocationRequest&, const std::string& script_path) const override {
    return {.argv = {"sh", "-c", local::kSubmit, "sh", script_path}};
  }

  std::variant<std::string, SubmitRefused> read_submit(const CommandOutput& output) const override {
    const std::string number = one_line(output.standard_output);
    if (!output.timed_out && output.exit_code == 0 && number_in<unsigned long>(number))
      return number;
    // Exit 3 is said by our own lines only, and before anything was started.  A script that is away
    // with its file system, no process or no space left: all of it may be better in a while.
    const bool refused = !output.timed_out && output.exit_code == 3;
    return SubmitRefused{refused ? Refusal::Transient : Refusal::Unclear,
                         one_line(output.standard_error)};
  }

  CommandLine poll(const std::string& prefix, const std::vector<std::string>&) const override {
    return {.argv = {"sh", "-c", common_ + local::kPoll, "sh", prefix}};
  }

  Result<std::vector<BatchJob>> read_poll(const std::string& prefix,
                                          const CommandOutput& output) const override {
    const auto distrust = [&](const std::string& why) {
      return Error{Error::Kind::Transient, "cannot list the pilots of this machine: " + why + " " +
                                               one_line(output.standard_error)};
    };
    if (output.timed_out) return distrust("no answer in time");
    if (output.exit_code != 0) return distrust("exit " + std::to_string(output.exit_code));
    auto lines = words_by_line(output.standard_output);
    if (lines.empty() || lines.back() != std::vector<std::string>{"end"})
      return distrust("half an answer");
    lines.pop_back();
    std::vector<BatchJob> jobs;
    for (const auto& words : lines) {
      auto job = read_job(words);
      if (!job) return distrust("a line that is not ours");
      if (!job->name.starts_with(prefix)) continue;
      // One that ends while the list is made stands in it twice, its end last.
      const auto before = std::find_if(jobs.begin(), jobs.end(),
                                       [&](const BatchJob& j) { return j.name == job->name; });
      if (before == jobs.end()) {
        jobs.push_back(std::move(*job));
      } else {
        *before = std::move(*job);
      }
    }
    return jobs;
  }

  CommandLine cancel(const std::vector<std::string>& names,
                     const std::vector<std::string>&) const override {
    CommandLine command{
        .argv = {"sh", "-c",
                 common_ + "hb_killer=" + shell_quoted(common_ + local::kKiller) + local::kCancel,
                 "sh"}};
    command.argv.insert(command.argv.end(), names.begin(), names.end());
    return command;
  }

  CommandLine probe() const override { return {.argv = {"sh", "-c", local::kProbe}}; }

  Result<std::vector<Offer>> read_probe(const CommandOutput& output) const override {
    Offer offer{.nodes = 1};
    for (const auto& words : words_by_line(output.standard_output)) {
      const auto number = words.size() == 2 ? number_in<unsigned long>(words[1]) : std::nullopt;
      if (!number) continue;
      if (words[0] == "cpus") offer.cpus = static_cast<double>(*number);
      if (words[0] == "memory") offer.memory = *number * 1024;
      if (words[0] == "gpus" && *number > 0) offer.gpus[""] = static_cast<std::uint32_t>(*number);
    }
    if (output.timed_out || output.exit_code != 0 || offer.cpus == 0 || offer.memory == 0) {
      return Error{Error::Kind::Transient,
                   "cannot tell the size of this machine: " + one_line(output.standard_error)};
    }
    return std::vector<Offer>{offer};
  }

 private:
  std::string common_;
};

}  // namespace
}  // namespace hpcbatch

HPCBATCH_SCHEDULER(hpcbatch::Local, "local", "1.0");
