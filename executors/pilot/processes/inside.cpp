#include "pilot/processes/inside.hpp"

#include "pilot/policy/container_command.hpp"
#include "pilot/processes/plain_script.hpp"
#include "pilot/processes/prepare.hpp"
#include "posix/regular_file.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hpcbatch::pilot {
namespace {

constexpr int kCannotReport = 125;
constexpr int kNotRunnable = 126;
constexpr int kNotThere = 127;
constexpr int kShellsSignal = 128;
constexpr int kHandedOn[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT};

bool write_report(const Fd& file, const ContainerReport& report) {
  const std::string text = to_text(report);
  return ::pwrite(file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

/// As execvp.
[[noreturn]] void become_command(const std::vector<std::string>& paths,
                                 std::vector<char*>& arguments, int trouble) {
  int remembered = ENOENT;
  std::vector<char*> for_shell = plain_script_argv(arguments);
  for (const std::string& path : paths) {
    ::execve(path.c_str(), arguments.data(), environ);
    if (errno == ENOEXEC) become_plain_script(path.c_str(), for_shell.data(), environ);
    if (errno == EACCES) {
      remembered = EACCES;
    } else if (errno != ENOENT && errno != ENOTDIR) {
      remembered = errno;
      break;
    }
  }
  [[maybe_unused]] const ssize_t told = ::write(trouble, &remembered, sizeof remembered);
  ::_exit(kNotThere);
}

/// The command's process, in a group of its own; or errno, negative, where it cannot be run.
pid_t start_command(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::vector<std::string> paths = candidates(command.front(), std::getenv("PATH"));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return -errno;
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return -errno;
  if (pid == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    become_command(paths, arguments, writing.get());
  }
  ::setpgid(pid, pid);
  writing.reset();
  int trouble = 0;
  if (::read(reading.get(), &trouble, sizeof trouble) != sizeof trouble) return pid;
  ::waitpid(pid, nullptr, 0);
  return -trouble;
}

/// Hands signals on until the command has ended; its status.
int attend(pid_t command, const sigset_t& signals) {
  for (;;) {
    int status = 0;
    for (pid_t gone = 0; (gone = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (gone == command) return status;
    }
    const int signal = ::sigwaitinfo(&signals, nullptr);
    if (signal > 0 && signal != SIGCHLD) ::kill(-command, signal);
  }
}

}  // namespace

int run_inside(const std::string& report, const std::vector<std::string>& command) {
  const RegularFile opened = open_regular(AT_FDCWD, report, O_WRONLY | O_CREAT);
  const Fd& file = opened.fd;
  if (!opened || !write_report(file, {ContainerReport::Said::Begun, 0})) {
    const int error = opened ? errno : opened.error;
    std::fprintf(stderr, "hpcbatch: cannot write %s in the container: %s\n", report.c_str(),
                 why_not_regular(error).c_str());
    return kCannotReport;
  }
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : kHandedOn) ::sigaddset(&signals, signal);
  ::sigaddset(&signals, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  const pid_t pid = start_command(command);
  if (pid < 0) {
    write_report(file, {ContainerReport::Said::CannotRun, -pid});
    return -pid == ENOENT || -pid == ENOTDIR ? kNotThere : kNotRunnable;
  }
  const int status = attend(pid, signals);
  if (WIFSIGNALED(status)) {
    write_report(file, {ContainerReport::Said::Signalled, WTERMSIG(status)});
    return kShellsSignal + WTERMSIG(status);
  }
  write_report(file, {ContainerReport::Said::Exited, WEXITSTATUS(status)});
  return WEXITSTATUS(status);
}

}  // namespace hpcbatch::pilot
