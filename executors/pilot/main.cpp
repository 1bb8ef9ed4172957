// hpcbatch-pilot FILE: reads who it is and works until there is nothing more to do.
// hpcbatch-pilot relay WORKSPACE [ADDRESS]: stands between the engine and pilots (relay.hpp).
// hpcbatch-pilot files WORKSPACE: files to the engine and from it (file_service.hpp).
// hpcbatch-pilot spool WORKSPACE: one exchange with pilots by files (exchange.hpp).
// hpcbatch-pilot answering ...: a service whose workers answer (answering_service.hpp).
// hpcbatch-pilot node-run ...: a command on the nodes of a task (node_run.hpp), as node-rsh too.
// hpcbatch-pilot node-agent ...: the end of that on another node (node_agent.hpp).
// hpcbatch-pilot inside REPORT COMMAND...: runs a task's command in its container (contained.hpp).
#include "pilot/answering/answering_service.hpp"
#include "pilot/base/log_line.hpp"
#include "pilot/nodes/node_agent.hpp"
#include "pilot/nodes/node_run.hpp"
#include "pilot/pilot.hpp"
#include "pilot/processes/contained.hpp"
#include "pilot/processes/prepare.hpp"
#include "pilot/site/file_service.hpp"
#include "pilot/site/relay.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace hpcbatch;

constexpr int kUsage = 2;
constexpr int kKeeperSignal = SIGUSR1;

std::uint32_t own_rank() {
  for (const char* name : {"HPCBATCH_NODE_RANK", "SLURM_NODEID"}) {
    if (const char* text = std::getenv(name))
      return static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
  }
  return 0;
}

/// A program may be started without its standard descriptors; what is opened next would take their
/// place.
void fill_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) [[maybe_unused]]
      const int opened = ::open("/dev/null", O_RDWR);
  }
}

/// A pilot holds descriptors for each of its slots.  Tasks get the limits as they were.
std::optional<rlimit> raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
    return std::nullopt;
  const rlimit raised{limit.rlim_max, limit.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &raised) != 0) return std::nullopt;
  return limit;
}

int relay(const std::string& workspace, const std::string& address) {
  pilot::set_log_name("hpcbatch-pilot relay");
  // An end that is gone is noticed when it is written to.
  std::signal(SIGPIPE, SIG_IGN);
  auto listener = pilot::RelayListener::open(workspace, address);
  if (!listener) {
    pilot::log_line(listener.error().text);
    pilot::Relay::cannot_begin(STDOUT_FILENO, listener.error().text);
    return kUsage;
  }
  raise_open_files();
  pilot::Relay(std::move(*listener), Fd(STDIN_FILENO), Fd(STDOUT_FILENO)).run();
  return 0;
}

int answering(const std::vector<std::string>& arguments) {
  pilot::set_log_name("hpcbatch-pilot answering");
  const auto options = pilot::read_answering_options(arguments);
  if (!options) {
    pilot::log_line("it is started by pilots alone");
    return kUsage;
  }
  std::signal(SIGPIPE, SIG_IGN);
  // Workers get a standard input of their own.
  Fd control(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  return pilot::AnsweringService(*options, std::move(control)).run();
}

}  // namespace

int main(int argc, char** argv) {
  // Whoever starts this has given it the task's umask.
  if (argc >= 4 && std::strcmp(argv[1], "inside") == 0)
    return pilot::run_inside(argv[2], {argv + 3, argv + argc});
  const std::string called(argc > 0 ? argv[0] : "");
  if (called.ends_with("/node-rsh")) return pilot::run_as_rsh({argv + 1, argv + argc});
  if (called.ends_with("/node-run")) return pilot::run_on_nodes({argv + 1, argv + argc});
  if (argc >= 2 && std::strcmp(argv[1], "node-run") == 0)
    return pilot::run_on_nodes({argv + 2, argv + argc});
  // All that is ours is the owner's alone, whatever a login or a batch system made of it; tasks get
  // that of whoever submitted them.
  ::umask(077);
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::puts("hpcbatch-pilot " HPCBATCH_VERSION);
    return 0;
  }
  if ((argc == 3 || argc == 4) && std::strcmp(argv[1], "relay") == 0)
    return relay(argv[2], argc == 4 ? argv[3] : "");
  if (argc == 3 && std::strcmp(argv[1], "spool") == 0) {
    std::signal(SIGPIPE, SIG_IGN);
    return pilot::exchange_by_standard_streams(argv[2]);
  }
  if (argc == 3 && std::strcmp(argv[1], "files") == 0) {
    std::signal(SIGPIPE, SIG_IGN);
    return pilot::serve_files(argv[2], STDIN_FILENO, STDOUT_FILENO);
  }
  if (argc == 6 && std::strcmp(argv[1], "node-agent") == 0) {
    pilot::set_log_name("hpcbatch-pilot node-agent");
    return pilot::run_node_agent(argv[2], argv[3],
                                 static_cast<std::uint32_t>(std::strtoul(argv[4], nullptr, 10)),
                                 static_cast<std::uint32_t>(std::strtoul(argv[5], nullptr, 10)));
  }
  if (argc >= 2 && std::strcmp(argv[1], "answering") == 0)
    return answering({argv + 2, argv + argc});
  if (argc != 2 || argv[1][0] == '-') {
    std::fputs(
        "usage: hpcbatch-pilot FILE, with the file that the engine wrote for this allocation\n",
        stderr);
    return kUsage;
  }
  const std::string path = argv[1];
  fill_standard_descriptors();
  // The key is in our memory: no core file, and nobody of the same user looks in.
  ::prctl(PR_SET_DUMPABLE, 0);
  const auto file = wire::read_pilot_file(path);
  if (!file) {
    std::fprintf(stderr, "hpcbatch-pilot: %s\n", file.error().text.c_str());
    return kUsage;
  }
  const std::uint32_t rank = own_rank();
  const std::string name = file->allocation + "." + std::to_string(rank);
  pilot::set_log_name("hpcbatch-pilot " + name);
  return pilot::keep(
      [&] {
        pilot::log_line("starts, version " HPCBATCH_VERSION ", process " +
                        std::to_string(::getpid()));
        return pilot::Pilot(path, *file, rank, kKeeperSignal, raise_open_files()).run();
      },
      kKeeperSignal);
}
