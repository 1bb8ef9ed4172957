#include "pilot/processes/spawn.hpp"

#include "pilot/processes/plain_script.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>

namespace hpcbatch::pilot {
namespace {

// Everything below runs in the child on the pilot's memory, with the pilot asleep: system calls
// only.

struct Report {
  Spawned::Step step;
  int error;
};

[[noreturn]] void give_up(volatile Report* report, Spawned::Step step) {
  report->error = errno;
  report->step = step;
  ::_exit(127);
}

void set_descriptor(int from, int to) {
  if (from == to) {
    ::fcntl(to, F_SETFD, 0);
  } else {
    ::dup2(from, to);
  }
}

[[noreturn]] void become(const SpawnPlan& plan, pid_t pilot, volatile Report* report) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != pilot) ::_exit(127);  // the pilot died before we asked to be told

  if (plan.control_group >= 0 && ::write(plan.control_group, "0", 1) != 1) {
    give_up(report, Spawned::Step::ControlGroup);
  }
  if (plan.cpus != nullptr) ::sched_setaffinity(0, sizeof *plan.cpus, plan.cpus);
  if (plan.open_files != nullptr) ::setrlimit(RLIMIT_NOFILE, plan.open_files);

  if (plan.umask) ::umask(*plan.umask);

  struct sigaction normal {};
  normal.sa_handler = SIG_DFL;
  ::sigaction(SIGPIPE, &normal, nullptr);
  ::sigaction(SIGHUP, &normal, nullptr);
  ::sigaction(SIGXFSZ, &normal, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  set_descriptor(plan.standard_input, STDIN_FILENO);
  set_descriptor(plan.standard_output, STDOUT_FILENO);
  set_descriptor(plan.standard_error, STDERR_FILENO);

  if (plan.directory != nullptr && ::chdir(plan.directory) != 0)
    give_up(report, Spawned::Step::Directory);

  // As execvp: one that may not be executed is remembered while the others are tried.
  int remembered = ENOENT;
  for (const char* program : plan.programs) {
    ::execve(program, plan.argv, plan.environment);
    if (errno == ENOEXEC) become_plain_script(program, plan.shell_argv, plan.environment);
    if (errno == EACCES) {
      remembered = EACCES;
    } else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE) {
      remembered = errno;
      break;
    }
  }
  errno = remembered;
  give_up(report, Spawned::Step::Program);
}

// Not inlined: vfork returns twice, and no variable of a caller may live across that.
[[gnu::noinline]] pid_t borrow_and_become(const SpawnPlan& plan, pid_t pilot,
                                          volatile Report* report) {
  const pid_t pid = ::vfork();
  if (pid == 0) become(plan, pilot, report);
  return pid;
}

}  // namespace

Spawned spawn(const SpawnPlan& plan) {
  volatile Report report{Spawned::Step::None, 0};
  const pid_t pid = borrow_and_become(plan, ::getpid(), &report);
  if (pid < 0) return {-1, Spawned::Step::Start, errno};
  if (report.step == Spawned::Step::None) return {pid, Spawned::Step::None, 0};
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {-1, report.step, report.error};
}

}  // namespace hpcbatch::pilot
