#include "pilot/processes/asks_for_input.hpp"

#include "pilot/processes/process_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>

namespace hpcbatch::pilot {
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

/// One that is about to sleep or has just been woken is not so for a millisecond.
bool sleeps_unnamed(const std::string& folder) {
  constexpr timespec kLonger{0, 1'000'000};
  const std::string before = asleep_since(folder);
  if (before.empty()) return false;
  ::nanosleep(&kLonger, nullptr);
  return wait_of(folder) == "0" && asleep_since(folder) == before;
}

/// pipe_read, anon_pipe_read, do_poll, ep_poll, do_select, io_cqring_wait, splice's wait for a pipe.
bool waits_for_input(pid_t pid, pid_t thread) {
  const std::string folder =
      "/proc/" + std::to_string(pid) + "/task/" + std::to_string(thread) + "/";
  const std::string where = wait_of(folder);
  if (where == "0") return sleeps_unnamed(folder);
  for (const std::string_view part : {"pipe", "poll", "select", "io_cqring"}) {
    if (where.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

bool asks_for_input(pid_t root, ino_t pipe) {
  for (const pid_t pid : with_descendants({root})) {
    if (!has_open(pid, pipe)) continue;
    for (const pid_t thread : threads_of(pid)) {
      if (waits_for_input(pid, thread)) return true;
    }
  }
  return false;
}

}  // namespace hpcbatch::pilot
