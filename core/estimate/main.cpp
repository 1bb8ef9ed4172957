// The program `hpcbatch-estimate`: says how well waits of a real queue are told, and is the process
// in which an estimator is trained.
#include "cli/process/exit.hpp"
#include "cli/process/surroundings.hpp"
#include "cli/show/values.hpp"
#include "documents/configuration.hpp"
#include "documents/state_paths.hpp"
#include "estimate/learn_command.hpp"
#include "estimate/replay.hpp"
#include "estimate/training.hpp"
#include "sim/files/text_file.hpp"

#include <boost/json/parse.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <unistd.h>

namespace {

using namespace hpcbatch;

constexpr const char* kUsage =
    "hpcbatch-estimate POLLS [--estimator NAME] [--config YAML] [--json]: how well waits of the "
    "jobs "
    "in POLLS (CSV, gzip'ed or not; columns as in slurm-queue-time-pred) are told; NAME is xgboost "
    "unless it is said, and 'none' trains nothing";

struct Asked {
  std::string polls, estimator{"xgboost"}, config;
  bool json{false};
};

Asked asked_by(const std::vector<std::string>& words) {
  Asked asked;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const auto value = [&] {
      if (at + 1 == words.size()) throw std::invalid_argument(words[at] + " wants a value");
      return words[++at];
    };
    if (words[at] == "--json") {
      asked.json = true;
    } else if (words[at] == "--estimator") {
      asked.estimator = value();
    } else if (words[at] == "--config") {
      asked.config = value();
    } else if (words[at].starts_with("--") || !asked.polls.empty()) {
      throw std::invalid_argument("what is '" + words[at] + "'?  " + kUsage);
    } else {
      asked.polls = words[at];
    }
  }
  if (asked.polls.empty()) throw std::invalid_argument(kUsage);
  return asked;
}

/// As the engine's, with what the configuration adds.
PluginHost plugin_host() {
  const char* path = std::getenv("HPCBATCH_PLUGIN_PATH");
  const auto places = find_places(own_environment());
  return PluginHost(
      plugin_search_path(places ? configured_plugin_path(*places) : std::vector<std::string>{},
                         path ? path : "", std::filesystem::read_symlink("/proc/self/exe")));
}

/// Trains in a process of its own; what that has made is loaded here.
estimate::Learner learner_of(const Asked& asked, std::shared_ptr<Estimator> estimator) {
  return [asked, estimator = std::move(estimator)](
             const TrainingTable& table) -> Result<std::unique_ptr<EstimatorModel>> {
    const auto model = estimate::train_apart(
        {.program = "/proc/self/exe", .estimator = asked.estimator}, {asked.config, table});
    if (!model) return model.error();
    return estimator->load(*model);
  };
}

foresight::Polls read_poll_file(const std::string& file) {
  std::istringstream in(sim::text_of_file(file));
  try {
    return foresight::read_polls(in);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument((file == "-" ? "standard input" : file) + ": " + error.what());
  }
}

/// On a terminal one line that is written over; elsewhere nothing.
void show_progress(const std::string& what, std::size_t done, std::size_t all) {
  if (::isatty(STDERR_FILENO) != 1) return;
  std::fprintf(stderr, "\r%s: %zu of %zu\033[K%s", what.c_str(), done, all,
               done == all ? "\r\033[K" : "");
  std::fflush(stderr);
}

int replay_polls(const Asked& asked) {
  const foresight::Polls polls = read_poll_file(asked.polls);
  estimate::ReplayOptions options;
  options.estimator = asked.estimator;
  if (asked.estimator != "none") {
    auto estimator = plugin_host().estimator(asked.estimator, asked.config);
    if (estimator) {
      options.learner = learner_of(asked, std::move(*estimator));
    } else {
      std::fprintf(stderr, "hpcbatch: nothing is learned: %s\n", estimator.error().text.c_str());
    }
  }
  const auto found = estimate::replay(polls, options, show_progress);
  if (asked.json)
    print_json(found);
  else
    print(estimate::tables(found));
  return kExitDone;
}

/// `train NAME PARENT`: as `train_apart` starts it.
int train(const std::vector<std::string>& words) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::to_string(::getppid()) != words[2]) return kExitUsage;
  return estimate::train_here(plugin_host(), words[1]);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() == 3 && words[0] == "train") return train(words);
    if (words.size() == 2 && words[0] == "learn")
      return estimate::learn_waits(plugin_host(), boost::json::parse(words[1]), show_progress);
    return replay_polls(asked_by(words));
  } catch (const InterruptedByUser&) {
    return kExitInterrupted;
  } catch (const CommandError& error) {
    std::fprintf(stderr, "hpcbatch: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hpcbatch: %s\n", error.what());
    return kExitUsage;
  }
}
