#include "posix/run_in_time.hpp"

#include "posix/fd.hpp"
#include "posix/spawn_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <utility>

namespace hpcbatch {
namespace {

using Clock = std::chrono::steady_clock;

struct Child {
  pid_t pid{-1};
  Fd out;
  std::string text;
};

std::vector<std::string> surroundings(const std::vector<std::string>& over) {
  std::vector<std::string> lines = over;
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string_view text(*line);
    const std::string_view name = text.substr(0, text.find('=') + 1);
    bool is_over = false;
    for (const std::string& other : over) is_over = is_over || other.starts_with(name);
    if (!is_over) lines.emplace_back(text);
  }
  return lines;
}

Child begin(const Program& program) {
  Child child;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return child;
  child.out = Fd(ends[0]);
  const Fd writing(ends[1]);
  const std::vector<std::string> lines = surroundings(program.variables);
  spawn_program(program.argv, {.environment = &lines, .output = writing.get()}, child.pid);
  return child;
}

/// True where the end of what it prints has come.
bool read_some(Child& child) {
  char bytes[4096];
  const ssize_t count = ::read(child.out.get(), bytes, sizeof bytes);
  if (count > 0) child.text.append(bytes, static_cast<std::size_t>(count));
  return count == 0 || (count < 0 && errno != EINTR);
}

std::optional<Ran> end(Child& child, bool is_whole) {
  if (child.pid < 0) return std::nullopt;
  if (!is_whole) ::kill(child.pid, SIGKILL);
  int status = 0;
  // What hangs in the driver does not even die; whoever started us is not to wait for it.
  if (!is_whole && ::waitpid(child.pid, &status, WNOHANG) == 0) return std::nullopt;
  while (is_whole && ::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  return is_whole ? std::optional(Ran{status, std::move(child.text)}) : std::nullopt;
}

}  // namespace

std::vector<std::optional<Ran>> run_in_time(const std::vector<Program>& programs,
                                            std::chrono::milliseconds time) {
  const Clock::time_point until = Clock::now() + time;
  std::vector<Child> children;
  children.reserve(programs.size());
  for (const Program& program : programs) children.push_back(begin(program));
  std::vector<bool> is_whole(children.size(), false);
  for (;;) {
    std::vector<pollfd> open;
    std::vector<std::size_t> whose;
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (is_whole[i] || children[i].pid < 0) continue;
      open.push_back({children[i].out.get(), POLLIN, 0});
      whose.push_back(i);
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (open.empty() || left <= 0) break;
    if (::poll(open.data(), open.size(), static_cast<int>(left)) <= 0) continue;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (open[i].revents != 0 && read_some(children[whose[i]])) is_whole[whose[i]] = true;
    }
  }
  std::vector<std::optional<Ran>> ran;
  for (std::size_t i = 0; i < children.size(); ++i) ran.push_back(end(children[i], is_whole[i]));
  return ran;
}

std::optional<Ran> run_in_time(const std::vector<std::string>& argv,
                               std::chrono::milliseconds time) {
  return run_in_time({Program{argv, {}}}, time).front();
}

}  // namespace hpcbatch
