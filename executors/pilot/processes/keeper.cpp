#include "pilot/processes/keeper.hpp"

#include "pilot/base/log_line.hpp"
#include "pilot/processes/control_group.hpp"
#include "pilot/processes/process_tree.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace hpcbatch::pilot {
namespace {

constexpr int kRounds = 500;  // of 10 ms
constexpr int kSignalled = 128;

/// The orphans of the pilot are ours by now.
void end_what_is_left() {
  for (int round = 0; round < kRounds; ++round) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const auto children = children_of(::getpid());
    if (children.empty()) return;
    for (const pid_t pid : with_descendants(children)) ::kill(pid, SIGKILL);
    ::poll(nullptr, 0, 10);
  }
  log_line("some processes of tasks could not be ended");
}

}  // namespace

int keep(const std::function<int()>& pilot, int pilot_signal) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD, pilot_signal}) ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a limit on files is an error of writing
  ::signal(SIGHUP, SIG_IGN);   // a pilot outlives the terminal that it was started from

  const pid_t keeper = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    log_line(std::string("cannot start: ") + std::strerror(errno));
    return 1;
  }
  if (child == 0) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::prctl(PR_SET_PDEATHSIG, pilot_signal);
    if (::getppid() != keeper) ::_exit(1);
    // A session for the pilot and all its tasks: they have no terminal, and none of them needs one
    // of its own, which makes the kernel schedule each as a group apart and halves the number of
    // tasks a second.
    ::setsid();
    ::_exit(pilot());
  }
  for (;;) {
    int signal = 0;
    ::sigwait(&set, &signal);
    if (signal == SIGTERM || signal == SIGINT) ::kill(child, signal);
    if (signal != SIGCHLD) continue;
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
      if (pid != child) continue;
      const bool killed = WIFSIGNALED(status);
      if (killed)
        log_line("the pilot was ended by signal " + std::to_string(WTERMSIG(status)) +
                 ": ending its tasks");
      end_what_is_left();
      if (killed) remove_left_over_groups();
      return killed ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
    }
  }
}

}  // namespace hpcbatch::pilot
