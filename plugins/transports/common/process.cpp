#include "process.hpp"

#include "hpcbatch/answer_bounds.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace hpcbatch {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// How often a process is looked at where the kernel cannot wake us at its end (before Linux 5.3).
constexpr milliseconds kLookEvery{10};
constexpr milliseconds kDeathAfterKill{2000};

Error failed(const std::string& what, int error, Error::Kind kind = Error::Kind::Transient) {
  return {kind, what + ": " + std::strerror(error)};
}

/// posix_spawnp would look in our own PATH; a site may have another.
std::string find_program(const std::string& name, const Environment& environment) {
  if (name.find('/') != std::string::npos) return name;
  const auto path = environment.find("PATH");
  std::string_view rest = path == environment.end() ? std::string_view{} : path->second;
  while (!rest.empty()) {
    const auto colon = std::min(rest.find(':'), rest.size());
    std::string file = std::string(rest.substr(0, colon)) + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) return file;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return {};
}

/// What a child needs to become a command, all of it made before the child is.
struct Program {
  const char* file{nullptr};
  char* const* argv{nullptr};
  char* const* environment{nullptr};
  std::array<int, 3> descriptors{};
  bool dies_with_us{false};
  pid_t us{0};
  int most_descriptors{0};
  rlim_t open_files{0};  ///< the limit that our caller had; 0: ours
};

/// An engine raises its own limit; programs that count to it, or use select(), get what they
/// expect.
rlim_t open_files_before() {
  const char* text = std::getenv("HPCBATCH_OPEN_FILES");
  return text == nullptr ? 0 : std::strtoul(text, nullptr, 10);
}

/// In a child that has our memory until it is the command: nothing here may allocate, lock or
/// return.  The error is our parent's to read.
[[noreturn]] void become(const Program& program, volatile int& error) {
  // Nothing that it starts may ask a person at our terminal.
  ::setsid();
  if (program.dies_with_us) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != program.us) ::_exit(127);
  }
  rlimit limit{};
  if (program.open_files != 0 && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = std::min(program.open_files, limit.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  // Signals that the engine ignores or blocks are no business of a command.
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &by_default, nullptr);
  for (int as = 0; as < 3; ++as) {
    const int given = program.descriptors[static_cast<std::size_t>(as)];
    if ((given == as ? ::fcntl(as, F_SETFD, 0) : ::dup2(given, as)) < 0) {
      error = errno;
      ::_exit(127);
    }
  }
  if (::syscall(SYS_close_range, 3U, ~0U, 0U) != 0) {  // before Linux 5.9
    for (int descriptor = 3; descriptor < program.most_descriptors; ++descriptor)
      ::close(descriptor);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(program.file, program.argv, program.environment);
  error = errno;
  ::_exit(127);
}

/// posix_spawn cannot ask for a signal at our death, and fork would copy the page tables of a large
/// engine.
pid_t spawn(const Program& program, volatile int& error) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t process = ::vfork();
  if (process == 0) become(program, error);
  if (process < 0) error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return process;
}

/// A file without a name that holds the text: the command may read it at its own pace while nobody
/// writes.
Result<Fd> file_of(const std::string& text) {
  if (text.empty()) {
    Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (null.get() < 0) return failed("cannot open /dev/null", errno);
    return null;
  }
  Fd file(::memfd_create("input", MFD_CLOEXEC));
  if (file.get() < 0) return failed("cannot keep a command's input", errno);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n =
        ::pwrite(file.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0) return failed("cannot keep a command's input", errno);
    done += static_cast<std::size_t>(n);
  }
  return file;
}

/// Takes what is there; closes the descriptor at its end.
void take(Fd& from, std::string& into) {
  std::array<char, 65536> buffer;
  while (from.get() >= 0) {
    const ssize_t n = ::read(from.get(), buffer.data(), buffer.size());
    if (n > 0) {
      into.append(buffer.data(), static_cast<std::size_t>(n));
      if (into.size() > kMostOutput) return;
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      from.reset();
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

}  // namespace

Result<pid_t> start_process(const CommandLine& command, const Environment& environment,
                            const std::array<int, 3>& descriptors, AtOurDeath at_our_death) {
  if (command.argv.empty()) return Error{Error::Kind::Rejected, "cannot run an empty command"};
  const std::string file = find_program(command.argv.front(), environment);
  if (file.empty()) {
    const auto path = environment.find("PATH");
    std::string text = "cannot run " + command.argv.front() + ": not found in PATH=";
    if (path != environment.end()) text += path->second;
    text += "; set PATH under 'environment' of the site's transport";
    return Error{Error::Kind::Rejected, text};
  }
  std::vector<std::string> texts;
  texts.reserve(environment.size());
  for (const auto& [name, value] : environment) {
    texts.push_back(name);
    texts.back().append("=").append(value);
  }
  std::vector<char*> argv;
  std::vector<char*> envp;
  argv.reserve(command.argv.size() + 1);
  envp.reserve(texts.size() + 1);
  for (const auto& word : command.argv) argv.push_back(const_cast<char*>(word.c_str()));
  for (auto& text : texts) envp.push_back(text.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  volatile int error = 0;
  const pid_t process = spawn({.file = file.c_str(),
                               .argv = argv.data(),
                               .environment = envp.data(),
                               .descriptors = descriptors,
                               .dies_with_us = at_our_death == AtOurDeath::Dies,
                               .us = ::getpid(),
                               .most_descriptors = static_cast<int>(::sysconf(_SC_OPEN_MAX)),
                               .open_files = open_files_before()},
                              error);
  if (error != 0) {
    if (process > 0) ::waitpid(process, nullptr, 0);
    const bool later = error == EAGAIN || error == ENOMEM || error == ETXTBSY;
    return failed("cannot run " + file, error,
                  later ? Error::Kind::Transient : Error::Kind::Rejected);
  }
  return process;
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed("cannot make a pipe", errno);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

int milliseconds_until(Clock::time_point when) {
  const auto left = std::chrono::ceil<milliseconds>(when - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 60'000));
}

Child::Child(pid_t process)
    : process_(process), end_(static_cast<int>(::syscall(SYS_pidfd_open, process, 0))) {}

bool Child::has_ended() {
  if (ended_) return true;
  const pid_t got = ::waitpid(process_, &status_, WNOHANG);
  // ECHILD: somebody else took its status away; it has ended, and nobody knows how.
  if (got == process_ || (got < 0 && errno == ECHILD)) ended_ = true;
  if (got < 0 && ended_) status_ = 255 << 8;
  return ended_;
}

int Child::exit_code() const {
  return WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
}

void Child::wait(Clock::time_point until, std::span<pollfd> others) const {
  std::vector<pollfd> waits(others.begin(), others.end());
  waits.push_back({end_.get(), POLLIN, 0});
  const auto wake = end_.get() >= 0 ? until : std::min(until, Clock::now() + kLookEvery);
  ::poll(waits.data(), waits.size(), milliseconds_until(wake));
}

void Child::kill(Whom whom) {
  ::kill(whom == Whom::Group ? -process_ : process_, SIGKILL);
  const auto patience = Clock::now() + kDeathAfterKill;
  while (!has_ended() && Clock::now() < patience) wait(patience, {});
}

Result<CommandOutput> run_process(const CommandLine& command, const Environment& environment,
                                  Deadline deadline) {
  auto input = file_of(command.input);
  if (!input) return input.error();
  auto out = make_pipe();
  if (!out) return out.error();
  auto err = make_pipe();
  if (!err) return err.error();
  // A submit that hangs must not get through after the engine that asked for it is gone: the next
  // one asks anew.
  auto started = start_process(
      command, environment, {input->get(), out->write.get(), err->write.get()}, AtOurDeath::Dies);
  if (!started) return started.error();
  out->write.reset();
  err->write.reset();

  Child child(*started);
  CommandOutput output;
  for (;;) {
    // Asked before the pipes are emptied: whatever the child wrote before its end is then in them.
    const bool ended = child.has_ended();
    take(out->read, output.standard_output);
    take(err->read, output.standard_error);
    if (output.standard_output.size() > kMostOutput || output.standard_error.size() > kMostOutput) {
      child.kill(Child::Whom::Group);
      return Error{Error::Kind::Transient,
                   command.argv.front() + " was killed: it printed more than 64 MB"};
    }
    if (ended) {
      output.exit_code = child.exit_code();
      return output;
    }
    if (Clock::now() >= deadline) {
      child.kill(Child::Whom::Group);
      take(out->read, output.standard_output);
      take(err->read, output.standard_error);
      output.exit_code = -1;
      output.timed_out = true;
      return output;
    }
    std::array<pollfd, 2> pipes{{{out->read.get(), POLLIN, 0}, {err->read.get(), POLLIN, 0}}};
    child.wait(deadline, pipes);
  }
}

Result<TalkingProcess> open_process(const CommandLine& command, const Environment& environment) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return failed("cannot make a socket pair", errno);
  }
  Fd ours(ends[0]);
  Fd theirs(ends[1]);
  Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  auto started = start_process(command, environment, {theirs.get(), theirs.get(), null.get()},
                               AtOurDeath::Lives);
  if (!started) return started.error();
  return TalkingProcess{*started, std::move(ours)};
}

bool is_variable_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

Environment read_environment(const Keys& keys) {
  Environment environment;
  for (const Keys::Entry& entry : keys.entries("environment", "a map of names to values")) {
    if (!is_variable_name(entry.name))
      Keys::fail(entry, "'" + entry.name + "' is no name of a variable");
    environment[entry.name] = entry.text;
  }
  return environment;
}

}  // namespace hpcbatch
