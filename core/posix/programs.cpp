#include "posix/programs.hpp"

#include "posix/files.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <sstream>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch {

void close_from(int first) {
  // Not glibc's function, which is newer than the oldest glibc that we run with.
  if (::syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0U) == 0) return;
  // Before Linux 5.9.  The limit of open files may be a thousand million: only what is there is closed.
  std::vector<int> open;
  DIR* const listed = ::opendir("/proc/self/fd");
  if (listed == nullptr) return;
  while (const dirent* entry = ::readdir(listed)) {
    const auto descriptor = static_cast<int>(std::strtol(entry->d_name, nullptr, 10));
    if (descriptor >= first) open.push_back(descriptor);
  }
  ::closedir(listed);
  for (const int descriptor : open) ::close(descriptor);
}

namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

int spawn_program(const std::vector<std::string>& argv, const SpawnOptions& options, pid_t& pid) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  if (options.input < 0)
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  else
    ::posix_spawn_file_actions_adddup2(&files, options.input, STDIN_FILENO);
  if (options.output >= 0)
    ::posix_spawn_file_actions_adddup2(&files, options.output, STDOUT_FILENO);
  if (options.error >= 0) ::posix_spawn_file_actions_adddup2(&files, options.error, STDERR_FILENO);
  if (options.handed_over >= 0)
    ::posix_spawn_file_actions_adddup2(&files, options.handed_over, kHandedOver);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, static_cast<short>((options.unblocks_signals ? POSIX_SPAWN_SETSIGMASK : 0) |
                                      (options.own_group ? POSIX_SPAWN_SETPGROUP : 0) |
                                      (options.own_session ? POSIX_SPAWN_SETSID : 0) |
                                      (options.as_from_a_shell ? POSIX_SPAWN_SETSIGDEF : 0)));
  std::vector<std::string> words = argv;
  std::vector<std::string> lines;
  if (options.environment != nullptr) lines = *options.environment;
  const std::vector<char*> own = pointers_to(lines);
  const int error = ::posix_spawnp(
      &pid, options.program.empty() ? words.front().c_str() : options.program.c_str(), &files,
      &attributes, pointers_to(words).data(),
      options.environment != nullptr ? own.data() : environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) pid = -1;
  return error;
}

int wait_for_end(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

int shell_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

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
  if (is_whole) return Ran{wait_for_end(child.pid), std::move(child.text)};
  // What hangs in the driver does not even die; whoever started us is not to wait for it.
  ::waitpid(child.pid, nullptr, WNOHANG);
  return std::nullopt;
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

namespace {

std::string read_start_of(const std::string& file) {
  const Fd opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text{};
  const ssize_t size = opened ? ::read(opened.get(), text.data(), text.size()) : -1;
  return size <= 0 ? "" : std::string(text.data(), static_cast<std::size_t>(size));
}

}  // namespace

std::optional<ProcessFacts> facts_of_process(int process) {
  const std::string stat = read_start_of("/proc/" + std::to_string(process) + "/stat");
  // The name stands in brackets and may hold anything, brackets too.
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  ProcessFacts facts;
  std::string ignored;
  fields >> facts.state >> facts.parent >> ignored >> facts.session;
  constexpr int kFieldsBetween = 15;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> ignored;
  if (!(fields >> facts.start)) return std::nullopt;
  return facts;
}

long long start_of_process(int process) {
  const auto facts = facts_of_process(process);
  return !facts || facts->state == 'Z' || facts->state == 'X' ? 0 : facts->start;
}

bool is_running(int process, long long start, const std::string& boot) {
  return boot == boot_id() && start != 0 && start_of_process(process) == start;
}

long long time_of_start(long long ticks) {
  std::istringstream uptime(read_start_of("/proc/uptime"));
  double seconds = 0;
  const long hertz = ::sysconf(_SC_CLK_TCK);
  if (!(uptime >> seconds) || hertz <= 0) return 0;
  return std::time(nullptr) - static_cast<long long>(seconds) + ticks / hertz;
}

std::string boot_id() {
  std::string text = read_start_of("/proc/sys/kernel/random/boot_id");
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace hpcbatch
