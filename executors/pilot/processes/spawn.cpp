#include "pilot/processes/spawn.hpp"

#include "pilot/processes/process_tree.hpp"
#include "posix/files.hpp"
#include "posix/programs.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

namespace {

std::string read_short(const std::string& path) {
  char text[4096];
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  const ssize_t size = ::read(fd, text, sizeof text);
  ::close(fd);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : "";
}

bool has_open(pid_t pid, ino_t pipe) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  const std::string wanted = "pipe:[" + std::to_string(pipe) + "]";
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  if (!entries) return false;
  while (const dirent* entry = ::readdir(entries.get())) {
    char target[64];
    const ssize_t size = ::readlinkat(::dirfd(entries.get()), entry->d_name, target, sizeof target);
    if (size > 0 && std::string_view(target, static_cast<std::size_t>(size)) == wanted) return true;
  }
  return false;
}

/// proc(5): its state and how often it was switched away from; empty where it does not sleep.
std::string asleep_since(const std::string& folder) {
  const std::string status = read_short(folder + "status");
  if (status.find("\nState:\tS") == std::string::npos) return "";
  const std::size_t switches = status.find("\nvoluntary_ctxt_switches:");
  return switches == std::string::npos ? "" : status.substr(switches);
}

/// The kernel's function in which a thread sleeps; "0" where it runs, is about to, or is not told.
std::string wait_of(const std::string& folder) {
  const std::string where = read_short(folder + "wchan");
  return where.empty() ? "0" : where;
}

/// pipe_read, anon_pipe_read, do_poll, ep_poll, do_select, io_cqring_wait, splice's wait for a pipe.
bool waits_for_input(pid_t pid, pid_t thread, UnnamedSleeps& unnamed, Time now) {
  const std::string folder =
      "/proc/" + std::to_string(pid) + "/task/" + std::to_string(thread) + "/";
  const std::string where = wait_of(folder);
  if (where == "0") return unnamed.has_lasted(thread, asleep_since(folder), now);
  for (const std::string_view part : {"pipe", "poll", "select", "io_cqring"}) {
    if (where.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

bool UnnamedSleeps::has_lasted(pid_t thread, const std::string& switches, Time now) {
  constexpr std::chrono::milliseconds kLong{500};
  if (switches.empty()) {
    sleeps_.erase(thread);
    return false;
  }
  Sleep& sleep = sleeps_[thread];
  if (sleep.switches != switches) sleep = {switches, now};
  return now - sleep.since >= kLong;
}

bool asks_for_input(pid_t root, ino_t pipe, UnnamedSleeps& unnamed, Time now) {
  for (const pid_t pid : with_descendants({root})) {
    if (!has_open(pid, pipe)) continue;
    for (const pid_t thread : threads_of(pid)) {
      if (waits_for_input(pid, thread, unnamed, now)) return true;
    }
  }
  return false;
}

namespace {

constexpr std::size_t kMostWords = 4000;
constexpr int kSecond = 1000;

std::string end_of_what_is_printed(int fd, const std::function<void()>& each_second) {
  std::string text;
  char bytes[4096];
  for (;;) {
    pollfd wait{fd, POLLIN, 0};
    if (each_second && ::poll(&wait, 1, kSecond) == 0) {
      each_second();
      continue;
    }
    const ssize_t count = ::read(fd, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(bytes, static_cast<std::size_t>(count));
    if (text.size() > kMostWords) text.erase(0, text.size() - kMostWords);
  }
}

}  // namespace

std::pair<int, std::string> run_program(const std::vector<std::string>& argv,
                                        const std::vector<std::string>& environment,
                                        const std::function<void()>& each_second) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {-1, std::strerror(errno)};
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  pid_t pid = -1;
  const int error = spawn_program(argv,
                                  {.environment = &environment,
                                   .output = writing.get(),
                                   .error = writing.get(),
                                   .unblocks_signals = false},
                                  pid);
  if (error != 0) return {-1, "cannot run " + argv.front() + ": " + std::strerror(error)};
  writing.reset();
  std::string text = end_of_what_is_printed(reading.get(), each_second);
  const int status = wait_for_end(pid);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, std::move(text)};
}

namespace {

constexpr std::size_t kLookedAt = 256;
char program_of_scripts[] = "/bin/sh";

bool is_script(const char* path) {
  char head[kLookedAt];
  const int fd = ::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  // It may be executed and not read: then no shell could.
  if (fd < 0) return false;
  const ssize_t size = ::read(fd, head, sizeof head);
  ::close(fd);
  return size > 0 && std::memchr(head, 0, static_cast<std::size_t>(size)) == nullptr;
}

}  // namespace

std::vector<char*> plain_script_argv(const std::vector<char*>& argv) {
  std::vector<char*> words{program_of_scripts, argv.front()};
  words.insert(words.end(), argv.begin() + 1, argv.end());
  return words;
}

void become_plain_script(const char* path, char** shell_argv, char* const* environment) {
  if (is_script(path)) {
    shell_argv[1] = const_cast<char*>(path);
    ::execve(program_of_scripts, shell_argv, environment);
  }
  errno = ENOEXEC;
}

}  // namespace hpcbatch::pilot
