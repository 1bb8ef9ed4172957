#include "pilot/processes/process_tree.hpp"

#include "pilot/base/files.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>

#include <dirent.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

std::vector<pid_t> numbers_in(const std::string& directory) {
  std::vector<pid_t> numbers;
  DIR* dir = ::opendir(directory.c_str());
  if (dir == nullptr) return numbers;
  while (const dirent* entry = ::readdir(dir)) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) != 0)
      numbers.push_back(std::atoi(entry->d_name));
  }
  ::closedir(dir);
  return numbers;
}

/// Kernels may be built without the files that list children.
bool kernel_lists_children() {
  static const bool listed = [] {
    const std::string self = std::to_string(::getpid());
    return ::access(("/proc/" + self + "/task/" + self + "/children").c_str(), F_OK) == 0;
  }();
  return listed;
}

std::multimap<pid_t, pid_t> all_children() {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : numbers_in("/proc")) {
    if (const auto facts = facts_of(pid)) children.emplace(facts->parent, pid);
  }
  return children;
}

std::vector<pid_t> listed_children(pid_t pid) {
  std::vector<pid_t> children;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  const std::vector<pid_t> threads =
      pid == ::getpid() ? std::vector<pid_t>{pid} : numbers_in(tasks);
  for (const pid_t thread : threads) {
    for (const std::string& word :
         words_of(read_small(tasks + "/" + std::to_string(thread) + "/children"))) {
      children.push_back(std::atoi(word.c_str()));
    }
  }
  return children;
}

}  // namespace

std::optional<ProcessFacts> facts_of(pid_t pid) {
  const std::string text = read_small("/proc/" + std::to_string(pid) + "/stat");
  // The name stands in brackets and may hold anything, brackets too.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const std::vector<std::string> words = words_of(std::string_view(text).substr(name_end + 1));
  if (words.size() < 22) return std::nullopt;
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  ProcessFacts facts;
  facts.is_zombie = words[0] == "Z" || words[0] == "X";
  facts.parent = std::atoi(words[1].c_str());
  facts.group = std::atoi(words[2].c_str());
  facts.started = std::strtoull(words[19].c_str(), nullptr, 10);
  facts.resident = std::strtoull(words[21].c_str(), nullptr, 10) * page;
  std::uint64_t ticks = 0;
  for (const std::size_t of : {11U, 12U, 13U, 14U})
    ticks += std::strtoull(words[of].c_str(), nullptr, 10);
  static const auto a_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  facts.cpu = std::chrono::microseconds(ticks * 1'000'000 / a_second);
  return facts;
}

std::vector<pid_t> threads_of(pid_t pid) {
  return numbers_in("/proc/" + std::to_string(pid) + "/task");
}

std::vector<pid_t> children_of(pid_t pid) {
  if (kernel_lists_children()) return listed_children(pid);
  std::vector<pid_t> children;
  const auto all = all_children();
  for (auto [at, end] = all.equal_range(pid); at != end; ++at) children.push_back(at->second);
  return children;
}

std::vector<pid_t> with_descendants(const std::vector<pid_t>& roots) {
  std::vector<pid_t> found = roots;
  const bool listed = kernel_lists_children();
  const auto all = listed ? std::multimap<pid_t, pid_t>{} : all_children();
  for (std::size_t at = 0; at < found.size(); ++at) {
    if (listed) {
      const std::vector<pid_t> children = listed_children(found[at]);
      found.insert(found.end(), children.begin(), children.end());
    } else {
      for (auto [child, end] = all.equal_range(found[at]); child != end; ++child)
        found.push_back(child->second);
    }
  }
  return found;
}

std::string name_of(pid_t pid) {
  std::string name = read_small("/proc/" + std::to_string(pid) + "/comm");
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

std::string variable_of(pid_t pid, const std::string& name) {
  const std::string text = read_small("/proc/" + std::to_string(pid) + "/environ");
  const std::string wanted = name + "=";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    if (text.compare(at, wanted.size(), wanted) == 0) {
      return text.substr(at + wanted.size(), end - at - wanted.size());
    }
    at = end + 1;
  }
  return {};
}

std::uint64_t proportional_memory(pid_t pid) {
  for (const std::string& line : lines_of("/proc/" + std::to_string(pid) + "/smaps_rollup")) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() >= 2 && words[0] == "Pss:")
      return std::strtoull(words[1].c_str(), nullptr, 10) * 1024;
  }
  return 0;
}

namespace {

constexpr std::size_t kLongestTaskName = 15;  // of a process, in Linux

}  // namespace

void TaskProcesses::started(unsigned slot, pid_t main, std::string task_id, std::string attempt) {
  tasks_[slot] = Task{main, true, std::move(task_id), std::move(attempt), {}};
}

void TaskProcesses::ended(unsigned slot) {
  tasks_.erase(slot);
}

void TaskProcesses::main_ended(unsigned slot) {
  if (const auto at = tasks_.find(slot); at != tasks_.end()) at->second.main_lives = false;
}

int TaskProcesses::task_in_environment(pid_t pid) const {
  const std::string task_id = variable_of(pid, "HPCBATCH_TASK_ID");
  const std::string attempt = variable_of(pid, "HPCBATCH_ATTEMPT");
  for (const auto& [slot, task] : tasks_) {
    if (task_id == task.task_id && attempt == task.attempt) return static_cast<int>(slot);
  }
  return -1;
}

int TaskProcesses::find_task(pid_t orphan) const {
  const auto facts = facts_of(orphan);
  if (!facts || facts->is_zombie || ours_.contains(facts->group)) return -1;
  for (const auto& [slot, task] : tasks_) {
    const auto known = task.known.find(orphan);
    if (known != task.known.end() && known->second == facts->started) return static_cast<int>(slot);
    if (facts->group == task.main) return static_cast<int>(slot);
  }
  if (const int slot = task_in_environment(orphan); slot >= 0) return slot;
  // What stands between Podman and its container has lost its environment; what is in the container
  // has its own.
  for (const pid_t child : children_of(orphan)) {
    if (const int slot = task_in_environment(child); slot >= 0) return slot;
  }
  // A forked process has the environment that its service was started with, and a name that says
  // whose it is.
  if (!variable_of(orphan, "HPCBATCH_SERVICE").empty()) {
    const std::string name = name_of(orphan);
    for (const auto& [slot, task] : tasks_) {
      if (name == ("task " + task.task_id).substr(0, kLongestTaskName))
        return static_cast<int>(slot);
    }
    return -1;
  }
  // It hides well.  It is ended with the last task that it could be of, never instead of another
  // one's.
  if (tasks_.size() == 1) return static_cast<int>(tasks_.begin()->first);
  return -1;
}

std::map<unsigned, std::vector<pid_t>> TaskProcesses::members() {
  std::map<unsigned, std::vector<pid_t>> roots;
  std::map<pid_t, unsigned> mains;
  for (const auto& [slot, task] : tasks_) {
    if (!task.main_lives) continue;
    roots[slot].push_back(task.main);
    mains[task.main] = slot;
  }
  for (const pid_t child : children_of(::getpid())) {
    if (mains.contains(child) || ours_.contains(child)) continue;
    if (const int slot = find_task(child); slot >= 0)
      roots[static_cast<unsigned>(slot)].push_back(child);
  }
  std::map<unsigned, std::vector<pid_t>> members;
  for (const auto& [slot, starts] : roots) {
    Task& task = tasks_[slot];
    std::map<pid_t, std::uint64_t> known;
    for (const pid_t pid : with_descendants(starts)) {
      const auto facts = facts_of(pid);
      if (!facts || facts->is_zombie) continue;
      known[pid] = facts->started;
      members[slot].push_back(pid);
    }
    task.known = std::move(known);
  }
  return members;
}

}  // namespace hpcbatch::pilot
