#include "pilot/processes/prepare.hpp"

#include "pilot/base/files.hpp"
#include "pilot/base/log_line.hpp"
#include "pilot/processes/control_group.hpp"
#include "pilot/processes/process_tree.hpp"

#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

constexpr const char* kDefaultSearch = "/usr/local/bin:/usr/bin:/bin";

void replace_all(std::string& text, const std::string& token, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(token, at)) != std::string::npos; at += by.size()) {
    text.replace(at, token.size(), by);
  }
}

std::string absolute(const std::string& path, const std::string& directory) {
  return path.starts_with('/') ? path : directory + "/" + path;
}

/// Opening must not wait: of a FIFO nobody may ever hold the other end.
Fd open_now(const std::string& path, int flags) {
  Fd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
  if (fd) ::fcntl(fd.get(), F_SETFL, flags & O_APPEND);
  return fd;
}

/// The folders above it are made where they are missing, but none in the root: what is missing there
/// is a file system that this node has not mounted.
Fd create_now(const wire::Start& start, const std::string& path) {
  const int flags = O_WRONLY | O_CREAT | (start.open_mode() == 1 ? O_APPEND : O_TRUNC);
  Fd fd = open_now(path, flags);
  if (fd || errno != ENOENT) return fd;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  std::filesystem::path there = folder;
  while (!std::filesystem::exists(there, error) && there.has_relative_path())
    there = there.parent_path();
  if (!there.has_relative_path()) {
    errno = ENOENT;
    return {};
  }
  std::filesystem::create_directories(folder, error);
  if (!error) return open_now(path, flags);
  errno = error.value();
  return {};
}

/// Files made for a task have the modes that it would give them.
class TaskUmask {
 public:
  explicit TaskUmask(const wire::Start& start) : own_(::umask(077)) {
    ::umask(start.has_umask() ? start.umask() : own_);
  }
  TaskUmask(const TaskUmask&) = delete;
  TaskUmask& operator=(const TaskUmask&) = delete;
  ~TaskUmask() { ::umask(own_); }

 private:
  mode_t own_;
};

bool is_same_file(const Fd& a, const Fd& b) {
  struct stat one {};
  struct stat two {};
  return ::fstat(a.get(), &one) == 0 && ::fstat(b.get(), &two) == 0 && one.st_dev == two.st_dev &&
         one.st_ino == two.st_ino;
}

Refusal stage_out_refusal(const char* what, const std::string& path, int error) {
  return {Failure::StageOutFailed,
          std::string("cannot open ") + path + " for its " + what + ": " + std::strerror(error)};
}

}  // namespace

std::string attempt_directory(const wire::Attempt& attempt) {
  char name[96];
  std::snprintf(name, sizeof name, "%" PRIu64 ".%" PRIu32 "-%" PRIu32 "-%" PRIx64, attempt.array(),
                attempt.index(), attempt.number(), attempt.epoch());
  return name;
}

bool has_directory(const wire::Start& start) {
  return start.outputs_size() > 0 || start.links_size() > 0 || !start.directory_token().empty() ||
         start.directory().empty();
}

void put_directory(wire::Start& start, const std::string& directory) {
  const std::string token = start.directory_token();
  if (token.empty()) return;
  for (std::string& argument : *start.mutable_argv()) replace_all(argument, token, directory);
  for (wire::Variable& variable : *start.mutable_variables())
    replace_all(*variable.mutable_value(), token, directory);
  for (std::string& input : *start.mutable_inputs()) replace_all(input, token, directory);
  for (wire::Alias& link : *start.mutable_links())
    replace_all(*link.mutable_target(), token, directory);
  replace_all(*start.mutable_directory(), token, directory);
  replace_all(*start.mutable_standard_input(), token, directory);
  replace_all(*start.mutable_standard_output(), token, directory);
  replace_all(*start.mutable_standard_error(), token, directory);
}

std::optional<Refusal> make_links(const wire::Start& start, const std::string& directory) {
  const auto failed = [](const std::string& what) {
    return Refusal{Failure::StageInFailed, "cannot make " + what + ": " + std::strerror(errno)};
  };
  for (const wire::Alias& link : start.links()) {
    const std::string path = directory + "/" + link.name();
    if (!make_folders_above(path, directory.size())) return failed("the folder of " + path);
    if (::symlink(link.target().c_str(), path.c_str()) != 0) return failed("the link " + path);
  }
  return std::nullopt;
}

std::optional<Refusal> check_inputs(const wire::Start& start) {
  for (const std::string& path : start.inputs()) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd)
      return Refusal{Failure::InputMissing,
                     "cannot read the input " + path + ": " + std::strerror(errno), 0, path};
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      return Refusal{Failure::InputMissing, "the input " + path + " is not a regular file", 0,
                     path};
    }
  }
  return std::nullopt;
}

namespace {

/// The name of this node, without its domain, where a task with a number asks for it.
std::string with_node(const wire::Start& start, std::string path) {
  const std::string place = start.node_place().empty() ? "{node}" : start.node_place();
  if (start.numbered_size() == 0 || path.find(place) == std::string::npos) return path;
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const std::string name(host);
  replace_all(path, place, name.substr(0, name.find('.')));
  return path;
}

}  // namespace

std::variant<Files, Refusal> open_files(const wire::Start& start, const std::string& directory) {
  const TaskUmask task_umask(start);
  Files files;
  if (!start.standard_input().empty()) {
    const std::string path = absolute(start.standard_input(), directory);
    files.input = open_now(path, O_RDONLY);
    struct stat info {};
    if (!files.input || ::fstat(files.input.get(), &info) != 0) {
      return Refusal{Failure::InputMissing,
                     "cannot read " + path + " as standard input: " + std::strerror(errno), 0,
                     path};
    }
    if (S_ISDIR(info.st_mode) || S_ISFIFO(info.st_mode)) {
      return Refusal{Failure::InputMissing,
                     path + " cannot be standard input: it is no regular file", 0, path};
    }
  }
  if (!start.standard_output().empty()) {
    const std::string path = absolute(with_node(start, start.standard_output()), directory);
    files.output = create_now(start, path);
    if (!files.output) return stage_out_refusal("standard output", path, errno);
  }
  if (!start.standard_error().empty()) {
    const std::string path = absolute(with_node(start, start.standard_error()), directory);
    // The same file for both: one description, so that neither overwrites the other.
    const Fd seen(files.output ? ::open(path.c_str(), O_PATH | O_CLOEXEC) : -1);
    const bool same = seen && is_same_file(files.output, seen);
    files.error =
        same ? Fd(::fcntl(files.output.get(), F_DUPFD_CLOEXEC, 0)) : create_now(start, path);
    if (!files.error) return stage_out_refusal("standard error", path, errno);
  }
  return files;
}

std::vector<std::string> candidates(const std::string& program, const char* search) {
  if (program.find('/') != std::string::npos) return {program};
  std::vector<std::string> paths;
  std::string_view rest = search == nullptr ? kDefaultSearch : search;
  for (;;) {
    const std::size_t end = rest.find(':');
    const std::string_view directory = rest.substr(0, end);
    paths.push_back((directory.empty() ? std::string(".") : std::string(directory)) + "/" +
                    program);
    if (end == std::string_view::npos) return paths;
    rest.remove_prefix(end + 1);
  }
}

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
