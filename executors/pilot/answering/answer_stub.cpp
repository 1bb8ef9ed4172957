#include "pilot/answering/answer_stub.hpp"

#include "pilot/processes/prepare.hpp"
#include "posix/files.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace hpcbatch::pilot {
namespace {

constexpr std::string_view kPath = "PATH=";
constexpr std::string_view kTaskId = "HPCBATCH_TASK_ID=";
// As a shell says that it could not run a command.
constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;
constexpr long kMostToClose = 65'536;

std::string value_of(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& line : environment) {
    if (line.starts_with(name)) return line.substr(name.size());
  }
  return {};
}

void say(int socket, const std::string& text) {
  ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
}

/// One packet; empty at the end.
std::string hear(int socket) {
  std::string bytes(kLargestStubPacket + 1, '\0');
  ssize_t count = -1;
  do {
    count = ::recv(socket, bytes.data(), bytes.size(), 0);
  } while (count < 0 && errno == EINTR);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return bytes;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// Signals as they are in any other task.
void reset_signals() {
  for (const int number : {SIGPIPE, SIGTERM, SIGINT, SIGHUP}) std::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void become_the_command(const ServiceRequest& request,
                                     const std::vector<std::string>& environment,
                                     const std::string& why) {
  write_all(STDERR_FILENO, "hpcbatch: runs without its service: " + why + "\n");
  const std::vector<char*> argv = pointers_to(request.argv);
  const std::vector<char*> variables = pointers_to(environment);
  const std::string search = value_of(environment, kPath);
  int error = ENOENT;
  for (const std::string& path :
       candidates(request.argv.front(), search.empty() ? nullptr : search.c_str())) {
    ::execve(path.c_str(), argv.data(), variables.data());
    if (errno != ENOENT && errno != ENOTDIR) error = errno;
  }
  write_all(STDERR_FILENO,
            "hpcbatch: cannot run " + request.argv.front() + ": " + std::strerror(error) + "\n");
  ::_exit(error == ENOENT ? kNotFound : kNotExecutable);
}

[[noreturn]] void live_as_told(int answers, const ServiceRequest& request,
                               const std::vector<std::string>& environment) {
  for (;;) {
    const std::string packet = hear(answers);
    if (packet.empty()) become_the_command(request, environment, "it has ended");
    const std::string_view rest = std::string_view(packet).substr(1);
    switch (static_cast<StubWord>(packet.front())) {
      case StubWord::Output:
        write_all(STDOUT_FILENO, rest);
        break;
      case StubWord::Error:
        write_all(STDERR_FILENO, rest);
        break;
      case StubWord::Exit:
        ::_exit(std::atoi(packet.c_str() + 1));
      case StubWord::Fail:
        write_all(STDERR_FILENO, "hpcbatch: " + std::string(rest) + "\n");
        ::_exit(kFailedInService);
      case StubWord::Plain:
        become_the_command(request, environment, std::string(rest));
    }
  }
}

/// What any task has: its control group, directory, umask, cpus, limits and streams.
bool dress(const ServiceRequest& request, const StubDescriptors& descriptors) {
  if (descriptors.control_group >= 0) write_all(descriptors.control_group, "0");
  if (::chdir(request.directory.c_str()) != 0) {
    say(descriptors.reply, "cannot enter " + std::to_string(errno));
    return false;
  }
  if (request.umask) ::umask(*request.umask);
  if (!request.cpus.empty()) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    for (const unsigned cpu : request.cpus) CPU_SET(cpu, &cpus);
    ::sched_setaffinity(0, sizeof cpus, &cpus);
  }
  if (request.open_files) ::setrlimit(RLIMIT_NOFILE, &*request.open_files);
  ::dup2(descriptors.input, STDIN_FILENO);
  ::dup2(descriptors.output, STDOUT_FILENO);
  ::dup2(descriptors.error, STDERR_FILENO);
  return true;
}

void close_from(int first, int last) {
  if (first > last) return;
  if (::close_range(static_cast<unsigned>(first), static_cast<unsigned>(last), 0) == 0) return;
  // A kernel before 5.9 has no such call.
  const auto open_files = static_cast<int>(std::min(::sysconf(_SC_OPEN_MAX), kMostToClose));
  for (int fd = first; fd <= std::min(last, open_files); ++fd) ::close(fd);
}

void close_all_but(int one, int other) {
  const auto [low, high] = std::minmax(one, other);
  close_from(STDERR_FILENO + 1, low - 1);
  close_from(low + 1, high - 1);
  close_from(high + 1, std::numeric_limits<int>::max());
}

[[noreturn]] void be_the_stub(const ServiceRequest& request,
                              const std::vector<std::string>& environment,
                              const StubDescriptors& descriptors, int answers, int handed_over) {
  // Its end tells that the pilot is the parent now.
  char byte = 0;
  [[maybe_unused]] const ssize_t at_end = ::read(handed_over, &byte, 1);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  reset_signals();
  if (!dress(request, descriptors)) ::_exit(0);
  close_all_but(descriptors.reply, answers);
  const std::string name = "task " + value_of(environment, kTaskId);
  ::prctl(PR_SET_NAME, name.c_str());
  say(descriptors.reply, "here");
  if (hear(descriptors.reply) != "go") ::_exit(0);
  ::close(descriptors.reply);
  say(answers, std::to_string(::getpid()));
  ::fcntl(answers, F_SETFD, FD_CLOEXEC);
  live_as_told(answers, request, environment);
}

}  // namespace

Fd fork_stub(const ServiceRequest& request, const std::vector<std::string>& environment,
             const StubDescriptors& descriptors) {
  int ends[2];
  int pipe[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return {};
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  if (::pipe2(pipe, O_CLOEXEC) != 0) return {};
  const Fd handed_over(pipe[0]);
  Fd hand_over(pipe[1]);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  const pid_t first = ::fork();
  if (first < 0) return {};
  if (first == 0) {
    const pid_t second = ::fork();
    if (second != 0) ::_exit(second < 0 ? 1 : 0);
    hand_over.reset();
    be_the_stub(request, environment, descriptors, theirs.get(), handed_over.get());
  }
  int status = 0;
  while (::waitpid(first, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    errno = EAGAIN;
    return {};
  }
  return ours;
}

}  // namespace hpcbatch::pilot
