// The program `hpcbatch-sim`: replays a trace.  `hpcbatch sim` reads the command line and runs it.
#include "cli/process/exit.hpp"
#include "cli/show/values.hpp"
#include "sim/replay.hpp"

#include <boost/json/parse.hpp>

#include <cstdio>
#include <mutex>
#include <stdexcept>

#include <unistd.h>

namespace {

/// On a terminal one line that is written over; elsewhere nothing.
class ShownProgress {
 public:
  void operator()(const std::string& what, std::size_t done, std::size_t all) {
    if (!is_terminal_) return;
    const std::lock_guard lock(mutex_);
    std::fprintf(stderr, "\r%s: %zu of %zu\033[K", what.c_str(), done, all);
    if (done == all) std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
  }

 private:
  bool is_terminal_{::isatty(STDERR_FILENO) == 1};
  std::mutex mutex_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2)
      throw std::invalid_argument("this program is a part of hpcbatch: say hpcbatch sim TRACE");
    const auto command = hpcbatch::sim_command_of(boost::json::parse(argv[1]));
    auto trace = hpcbatch::sim::read_trace_file(command.trace, command.partition);
    ShownProgress shown;
    const auto found = hpcbatch::sim::replay(
        command, std::move(trace), [&](const std::string& what, std::size_t done, std::size_t all) {
          shown(what, done, all);
        });
    if (command.json)
      hpcbatch::print_json(found);
    else
      hpcbatch::print(hpcbatch::sim::tables(found));
    return hpcbatch::kExitDone;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hpcbatch: %s\n", error.what());
    return hpcbatch::kExitUsage;
  }
}
