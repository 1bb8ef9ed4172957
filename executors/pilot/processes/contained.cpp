#include "pilot/processes/contained.hpp"

#include "pilot/policy/container.hpp"
#include "pilot/processes/prepare.hpp"
#include "pilot/processes/spawn.hpp"
#include "posix/files.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

constexpr const char* kInside = "/.hpcbatch-inside";

bool can_be_bound(const std::string& path) {
  return path.find_first_of(":,") == std::string::npos;
}

bool is_folder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool is_there(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

Image look_at_image(const std::string& text, const std::string& directory) {
  PathFacts facts;
  const std::string path = text.starts_with('/') ? text : directory + "/" + text;
  if (is_path_of_image(text) && is_folder(path)) {
    facts.is_folder = true;
    facts.is_layout = is_there(path + "/oci-layout");
  }
  return image_of(text, directory, facts);
}

std::optional<Refusal> trouble_with(const Image& image) {
  const std::string path = path_of(image);
  if (path.empty() || ::access(path.c_str(), R_OK) == 0) return std::nullopt;
  return Refusal{Failure::ContainerMissing,
                 "cannot read the image " + path + ": " + std::strerror(errno)};
}

/// Each folder once, then what the task asks for, then its inputs: files alone, for a folder of
/// this node would hide what the image has in its place.  An input whose name cannot be said is
/// shown where the runtime shows it anyway.
std::vector<Bind> binds_of(const wire::Start& start, const ContainerView& view) {
  std::vector<std::string> folders{view.directory};
  const auto add = [&folders](const std::string& path) {
    if (!path.empty() && std::find(folders.begin(), folders.end(), path) == folders.end())
      folders.push_back(path);
  };
  for (const std::string& folder : view.folders) add(folder);
  add(view.temporary);
  std::vector<Bind> binds;
  binds.reserve(folders.size());
  for (const std::string& folder : folders) binds.push_back({folder, folder});
  for (const wire::Bind& bind : start.container_terms().binds())
    binds.push_back({bind.from(), bind.to(), bind.read_only()});
  for (const std::string& input : start.inputs()) {
    if (can_be_bound(input)) binds.push_back({input, input, true});
  }
  return binds;
}

std::optional<Refusal> trouble_with(const std::vector<Bind>& binds) {
  for (const Bind& bind : binds) {
    for (const std::string& path : {bind.from, bind.to}) {
      if (!can_be_bound(path)) {
        return Refusal{
            Failure::ContainerFailed,
            path + " cannot be shown to a container: its runtime takes no path with ':' or ','"};
      }
    }
    if (!is_there(bind.from)) {
      return Refusal{Failure::ContainerFailed,
                     "cannot show " + bind.from + " to a container: " + std::strerror(errno)};
    }
  }
  return std::nullopt;
}

SoftAndHard at_most(std::uint64_t most, const rlimit& limit) {
  return {std::min<std::uint64_t>(limit.rlim_cur, most),
          std::min<std::uint64_t>(limit.rlim_max, most)};
}

rlimit own_open_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

rlimit own_processes() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NPROC, &limit);
  return limit;
}

/// Podman lowers its own limit to this.
std::uint64_t most_processes() {
  std::uint64_t most = 32768;
  std::ifstream("/proc/sys/kernel/pid_max") >> most;
  return most;
}

mode_t own_umask() {
  const mode_t mask = ::umask(077);
  ::umask(mask);
  return mask;
}

void take_terms(const wire::Start& start, const ContainerView& view, ContainerPlan& plan) {
  const wire::Container& terms = start.container_terms();
  plan.has_network = !terms.no_network();
  plan.keeps_entrypoint = terms.keeps_entrypoint();
  for (const wire::Variable& variable : terms.variables())
    plan.variables[variable.name()] = variable.value();
  const bool has_gpus = terms.has_gpus() ? terms.gpus() : view.has_gpus;
  plan.gpus = has_gpus ? view.maker : GpuMaker::None;
}

ContainerWish wish_of(const wire::Container& terms) {
  return {
      .runtime = terms.runtime(),
      .no_network = terms.no_network(),
      .keeps_entrypoint = terms.keeps_entrypoint(),
      .has_read_only_binds = std::any_of(terms.binds().begin(), terms.binds().end(),
                                         [](const wire::Bind& bind) { return bind.read_only(); })};
}

/// What Charliecloud shows of the node in any case, and what lies in a folder that is shown.
void leave_out_what_is_shown(std::vector<Bind>& binds) {
  std::vector<std::string> shown{"/tmp"};
  std::vector<Bind> kept;
  for (Bind& bind : binds) {
    const bool is_shown = bind.from == bind.to &&
                          std::any_of(shown.begin(), shown.end(), [&](const std::string& folder) {
                            return bind.to.starts_with(folder + "/");
                          });
    if (is_shown) continue;
    if (bind.from == bind.to && is_folder(bind.from)) shown.push_back(bind.to);
    kept.push_back(std::move(bind));
  }
  binds = std::move(kept);
}

}  // namespace

std::vector<FoundRuntime> runtimes_on(const std::string& search) {
  std::vector<FoundRuntime> found;
  for (const Runtime runtime : ContainerRule().order) {
    for (const std::string& path : candidates(program_of(runtime), search.c_str())) {
      if (::access(path.c_str(), X_OK) != 0 || is_folder(path)) continue;
      found.push_back({runtime, path});
      break;
    }
  }
  return found;
}

std::variant<ContainerPlan, Refusal> plan_container(const wire::Start& start,
                                                    const ContainerView& view,
                                                    const ContainerGround& ground) {
  ContainerPlan plan;
  plan.image = look_at_image(start.container(), view.directory);
  // Of what is not there no runtime need say that it runs no such images.
  if (auto refusal = trouble_with(plan.image)) return *refusal;
  auto choice = choose_runtime(plan.image, wish_of(start.container_terms()), ground.rule,
                               runtimes_on(ground.search));
  if (const auto* why = std::get_if<std::string>(&choice))
    return Refusal{Failure::ContainerMissing, *why + "; its PATH is " + ground.search};
  plan.runtime = std::get<FoundRuntime>(choice);
  plan.name = "hpcbatch-" + attempt_directory(start.attempt());
  plan.directory = view.directory;
  plan.temporary = view.temporary;
  plan.binds = binds_of(start, view);
  if (auto refusal = trouble_with(plan.binds)) return *refusal;
  take_terms(start, view, plan);
  if (!plan.keeps_entrypoint) {
    plan.inside = kInside;
    plan.report = report_file(view.temporary);
    plan.binds.push_back({ground.program, kInside, true});
  }
  if (plan.runtime.runtime == Runtime::Charliecloud) leave_out_what_is_shown(plan.binds);
  if (plan.runtime.runtime == Runtime::Charliecloud && plan.image.kind == ImageKind::Tree) {
    if (auto refusal = complete_tree(plan)) return *refusal;
  }
  plan.umask = start.has_umask() ? start.umask() : own_umask();
  plan.open_files = at_most(RLIM_INFINITY, ground.open_files.value_or(own_open_files()));
  plan.processes = at_most(most_processes(), own_processes());
  plan.user = ::geteuid();
  plan.group = ::getegid();
  return plan;
}

/// Charliecloud alone shows nothing where the image has nothing in its place.
std::optional<Refusal> complete_tree(ContainerPlan& plan) {
  const std::string& tree = plan.prepared.empty() ? plan.image.place : plan.prepared;
  plan.has_environment_file = is_there(tree + "/ch/environment");
  for (const Bind& bind : plan.binds) {
    if (make_mount_point(tree, bind.to, is_folder(bind.from))) continue;
    return Refusal{Failure::ContainerFailed, "the image " + tree + " has no " + bind.to +
                                                 " at which to show " + bind.from +
                                                 ", and none can be made: " + std::strerror(errno)};
  }
  return std::nullopt;
}

std::string report_file(const std::string& temporary) {
  return temporary + "/.hpcbatch-inside";
}

namespace {

constexpr mode_t kFolderMode = 0755;
constexpr mode_t kFileMode = 0644;

bool make_last(const Fd& folder, const std::string& name, bool is_folder) {
  struct stat info {};
  if (::fstatat(folder.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (is_folder) return ::mkdirat(folder.get(), name.c_str(), kFolderMode) == 0 || errno == EEXIST;
  const Fd made(::openat(folder.get(), name.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  return made || errno == EEXIST;
}

}  // namespace

bool make_mount_point(const std::string& image, const std::string& path, bool is_folder) {
  Fd folder(::open(image.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (std::size_t at = 0; folder;) {
    const std::size_t begin = path.find_first_not_of('/', at);
    if (begin == std::string::npos) return true;
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    const bool is_last = path.find_first_not_of('/', end) == std::string::npos;
    if (name == "..") {
      errno = EINVAL;
      return false;
    }
    if (!make_last(folder, name, !is_last || is_folder)) return false;
    if (is_last) return true;
    Fd next(::openat(folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next && (errno == ELOOP || errno == ENOTDIR)) return true;
    folder = std::move(next);
    at = end;
  }
  return false;
}

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
