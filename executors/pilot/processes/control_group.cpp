#include "pilot/processes/control_group.hpp"

#include "pilot/base/files.hpp"
#include "wire/encrypted_link.hpp"

#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

constexpr std::string_view kPrefix = "hpcbatch-";

struct Place {
  std::string path;  // of our own group; empty: none
  bool is_v2{false};
};

/// The part of `path` below `root`, where that is what is mounted.
std::string below(std::string_view path, std::string_view root) {
  if (root != "/" && path.starts_with(root)) path.remove_prefix(root.size());
  return path == "/" ? std::string() : std::string(path);
}

bool lists(std::string_view words, std::string_view word, char separator) {
  while (!words.empty()) {
    const std::size_t end = words.find(separator);
    if (words.substr(0, end) == word) return true;
    if (end == std::string_view::npos) break;
    words.remove_prefix(end + 1);
  }
  return false;
}

/// Our path in the hierarchy of a controller ("memory"), or in that of v2 ("").
std::string own_group(std::string_view controller) {
  for (const std::string& line : lines_of("/proc/self/cgroup")) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view names = std::string_view(line).substr(first + 1, second - first - 1);
    if (controller.empty() ? names.empty() : lists(names, controller, ','))
      return line.substr(second + 1);
  }
  return {};
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
Place find_place() {
  for (const bool v2 : {false, true}) {
    const std::string path = own_group(v2 ? "" : "memory");
    if (path.empty()) continue;
    for (const std::string& line : lines_of("/proc/self/mountinfo")) {
      // number parent device root mountpoint options ... - type source super-options
      const std::vector<std::string> words = words_of(line);
      std::size_t dash = 0;
      while (dash < words.size() && words[dash] != "-") ++dash;
      if (words.size() < dash + 4 || dash < 5) continue;
      const std::string& type = words[dash + 1];
      const bool fits =
          v2 ? type == "cgroup2" : type == "cgroup" && lists(words[dash + 3], "memory", ',');
      if (!fits) continue;
      const std::string inside = words[4] + below(path, words[3]);
      // In a container the path may be the host's, which is not mounted here.
      const std::string own = ::access(inside.c_str(), F_OK) == 0 ? inside : words[4];
      if (v2 && !lists(read_small(own + "/cgroup.controllers"), "memory", ' ')) continue;
      return {own, v2};
    }
  }
  return {};
}

std::vector<std::string> folders_in(const std::string& path) {
  std::vector<std::string> names;
  DIR* dir = ::opendir(path.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = ::readdir(dir)) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  ::closedir(dir);
  return names;
}

/// Kills what runs in the group and removes it; gives up after two seconds, which only a process
/// that the kernel itself holds can outlast.
bool empty_and_remove(const std::string& path) {
  for (int round = 0; round < 200; ++round) {
    for (const std::string& word : words_of(read_small(path + "/cgroup.procs"))) {
      const pid_t pid = std::atoi(word.c_str());
      if (pid > 0) ::kill(pid, SIGKILL);  // 0: a process that another container alone can see
    }
    if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return true;
    if (errno != EBUSY) return false;
    ::poll(nullptr, 0, 10);
  }
  return false;
}

void remove_left_over(const std::string& parent) {
  const std::string below = parent + "/";
  for (const std::string& name : folders_in(parent)) {
    if (!name.starts_with(kPrefix)) continue;
    const std::string path = below + name;
    const Fd lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
    struct stat info {};
    if (::fstat(lock.get(), &info) != 0 || info.st_uid != ::geteuid()) continue;
    const std::string within = path + "/";
    for (const std::string& slot : folders_in(path)) empty_and_remove(within + slot);
    empty_and_remove(path);
  }
}

std::uint64_t value_behind(std::string_view text, std::string_view key) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ' ') {
      return std::strtoull(std::string(line.substr(key.size() + 1)).c_str(), nullptr, 10);
    }
    at = end + 1;
  }
  return 0;
}

}  // namespace

void remove_left_over_groups() {
  const Place place = find_place();
  if (!place.path.empty()) remove_left_over(place.path);
}

// --- one group ---------------------------------------------------------------------------------

ControlGroup::ControlGroup(std::string path, bool is_v2) : path_(std::move(path)), is_v2_(is_v2) {
  if (::mkdir(path_.c_str(), 0755) != 0 && errno != EEXIST) return;
  const auto open_file = [this](const char* name, int flags) {
    return Fd(::open((path_ + "/" + name).c_str(), flags | O_CLOEXEC));
  };
  processes_ = open_file("cgroup.procs", O_RDWR);
  events_ = open_file(is_v2_ ? "memory.events" : "memory.oom_control", O_RDONLY);
  statistics_ = open_file("memory.stat", O_RDONLY);
}

ControlGroup::~ControlGroup() {
  processes_.reset();
  events_.reset();
  statistics_.reset();
  empty_and_remove(path_);
}

bool ControlGroup::limit_memory(std::uint64_t bytes) {
  if (bytes == limit_) return true;
  const std::string none = is_v2_ ? "max" : "-1";
  const std::string amount = bytes == 0 ? none : std::to_string(bytes);
  const std::string main = path_ + (is_v2_ ? "/memory.max" : "/memory.limit_in_bytes");
  const std::string both = path_ + "/memory.memsw.limit_in_bytes";
  if (is_v2_) {
    write_small(path_ + "/memory.swap.max", bytes == 0 ? none : "0");
    if (!write_small(main, amount)) return false;
  } else {
    // The sum with swap may never be below the memory alone, so it is opened first.
    const bool has_both = write_small(both, none);
    if (!write_small(main, amount)) return false;
    if (has_both && bytes != 0) write_small(both, amount);
  }
  limit_ = bytes;
  return true;
}

std::uint64_t ControlGroup::memory_kills() const {
  return value_behind(read_again(events_.get()), "oom_kill");
}

std::uint64_t ControlGroup::memory() const {
  const std::string text = read_again(statistics_.get());
  if (is_v2_) return value_behind(text, "anon") + value_behind(text, "shmem");
  return value_behind(text, "total_rss") + value_behind(text, "total_shmem");
}

std::vector<pid_t> ControlGroup::members() const {
  std::vector<pid_t> pids;
  for (const std::string& word : words_of(read_again(processes_.get()))) {
    const pid_t pid = std::atoi(word.c_str());
    if (pid > 0) pids.push_back(pid);
  }
  return pids;
}

// --- all of a pilot ----------------------------------------------------------------------------

ControlGroups::ControlGroups() {
  const char* wanted = std::getenv("HPCBATCH_CONTROL_GROUPS");
  if (wanted != nullptr && std::string_view(wanted) == "no") {
    description_ =
        "no control groups, as HPCBATCH_CONTROL_GROUPS says; resident memory is watched instead";
    return;
  }
  const Place place = find_place();
  if (place.path.empty()) {
    description_ = "no control group with memory here; resident memory is watched instead";
    return;
  }
  is_v2_ = place.is_v2;
  open_events_around(place.path);
  remove_left_over(place.path);
  if (!make_own(place.path)) {
    description_ = "cannot make control groups in " + place.path + ": " + std::strerror(errno) +
                   "; resident memory is watched instead";
    return;
  }
  if (is_v2_ && !split_v2(place.path)) {
    description_ =
        "the control group " + place.path +
        " has other processes or is not ours to divide; resident memory is watched instead";
    lock_.reset();
    ::rmdir(own_.c_str());
    own_.clear();
    return;
  }
  description_ = std::string(is_v2_ ? "v2" : "v1") + " control groups in " + own_;
}

ControlGroups::~ControlGroups() {
  if (own_.empty()) return;
  if (!returns_to_.empty()) {
    write_small(returns_to_ + "/cgroup.subtree_control", "-memory");
    write_small(returns_to_ + "/cgroup.procs", "0");
    write_small(returns_to_ + "/cgroup.procs", std::to_string(::getppid()));
    empty_and_remove(own_ + "/pilot");
  }
  for (const std::string& slot : folders_in(own_)) empty_and_remove(own_ + "/" + slot);
  empty_and_remove(own_);
}

void ControlGroups::open_events_around(const std::string& group) {
  const std::string path = group + (is_v2_ ? "/memory.events.local" : "/memory.oom_control");
  events_around_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

std::uint64_t ControlGroups::kills_around() const {
  return events_around_ ? value_behind(read_again(events_around_.get()), "oom_kill") : 0;
}

bool ControlGroups::make_own(const std::string& parent) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    const std::string path =
        parent + "/" + std::string(kPrefix) + wire::to_hex(wire::random_key()).substr(0, 16);
    if (::mkdir(path.c_str(), 0755) != 0) return false;
    Fd lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Between the two calls somebody may take it for a left-over one and remove it.
    if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 && ::access(path.c_str(), F_OK) == 0) {
      own_ = path;
      lock_ = std::move(lock);
      return true;
    }
  }
  errno = EAGAIN;
  return false;
}

/// A v2 group with processes of its own hands no memory controller down: the pilot and its keeper
/// step aside first.
bool ControlGroups::split_v2(const std::string& parent) {
  const std::string aside = own_ + "/pilot";
  if (::mkdir(aside.c_str(), 0755) != 0) return false;
  const std::string keeper = std::to_string(::getppid());
  const bool done = write_small(aside + "/cgroup.procs", "0") &&
                    write_small(aside + "/cgroup.procs", keeper) &&
                    write_small(parent + "/cgroup.subtree_control", "+memory") &&
                    write_small(own_ + "/cgroup.subtree_control", "+memory");
  if (done) {
    returns_to_ = parent;
    open_events_around(aside);
    return true;
  }
  write_small(parent + "/cgroup.procs", "0");
  write_small(parent + "/cgroup.procs", keeper);
  ::rmdir(aside.c_str());
  return false;
}

std::unique_ptr<ControlGroup> ControlGroups::make(unsigned slot) {
  if (own_.empty()) return nullptr;
  auto group = std::make_unique<ControlGroup>(own_ + "/slot" + std::to_string(slot), is_v2_);
  return group->is_usable() ? std::move(group) : nullptr;
}

std::uint64_t OwnMemory::high_water() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

void OwnMemory::keep_small() {
  if (high_water() <= kept_ + kept_ / 4) return;
  ::malloc_trim(0);
  // proc(5), /proc/pid/clear_refs: 5 sets the peak to what is resident now.
  if (const int file = ::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC); file >= 0) {
    (void)!::write(file, "5", 1);
    ::close(file);
  }
  kept_ = std::max(kAsGoodAsNothing, high_water());
}

}  // namespace hpcbatch::pilot
