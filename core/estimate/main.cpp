// The program `hpcbatch-estimate`: makes a site's model of waits (`hpcbatch waits train`), and is the
// process in which an estimator is trained.
#include "cli/process/process.hpp"
#include "documents/configuration.hpp"
#include "documents/state_paths.hpp"
#include "estimate/training.hpp"

#include <boost/json/parse.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <unistd.h>

namespace {

using namespace hpcbatch;

/// As the engine's, with what the configuration adds.
PluginHost plugin_host() {
  const char* path = std::getenv("HPCBATCH_PLUGIN_PATH");
  const auto places = find_places(own_environment());
  return PluginHost(
      plugin_search_path(places ? configured_plugin_path(*places) : std::vector<std::string>{},
                         path ? path : "", std::filesystem::read_symlink("/proc/self/exe")));
}

/// On a terminal one line that is written over; elsewhere nothing.
void show_progress(const std::string& what, std::size_t done, std::size_t all) {
  if (::isatty(STDERR_FILENO) != 1) return;
  std::fprintf(stderr, "\r%s: %zu of %zu\033[K%s", what.c_str(), done, all,
               done == all ? "\r\033[K" : "");
  std::fflush(stderr);
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
    throw std::invalid_argument("this program is a part of hpcbatch: say hpcbatch waits train");
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
