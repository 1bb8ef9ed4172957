#include "pilot/base/files.hpp"

#include "pilot/base/log_line.hpp"
#include "posix/files.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

// An answer is a message of a few hundred bytes; a pipe holds 64 KiB, so the child never waits for
// us to read.
constexpr std::size_t kLongestAnswer = std::size_t{32} * 1024;

[[noreturn]] void work_and_answer(const std::function<std::string()>& work, int answer) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // What was open for tasks is theirs to close: a pipe ends when its last holder does.
  constexpr int kAnswer = STDERR_FILENO + 1;
  if (answer != kAnswer) ::dup2(answer, kAnswer);
  ::close_range(kAnswer + 1, ~0U, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGTERM,
           SIG_IGN);  // a batch system's TERM reaches all of us: what was begun is finished
  const std::string text = work().substr(0, kLongestAnswer);
  const ssize_t written = ::write(kAnswer, text.data(), text.size());
  ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
}

std::string answer_from(int fd) {
  std::string text(kLongestAnswer, '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t count = ::read(fd, text.data() + got, text.size() - got);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    got += static_cast<std::size_t>(count);
  }
  text.resize(got);
  return text;
}

}  // namespace

void Helpers::start(const std::function<std::string()>& work, std::string died,
                    std::function<void(const std::string&)> done) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    done(work());  // no descriptors left: slower, but done
    return;
  }
  Fd reading(ends[0]);
  const Fd writing(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) work_and_answer(work, writing.get());
  if (pid < 0) {
    done(work());
    return;
  }
  started_(pid);
  running_[pid] = Helper{std::move(reading), std::move(died), std::move(done)};
}

bool Helpers::reaped(pid_t pid, int status) {
  const auto at = running_.find(pid);
  if (at == running_.end()) return false;
  const Helper helper = std::move(at->second);
  running_.erase(at);
  const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  helper.done(well ? answer_from(helper.answer.get()) : helper.died);
  return true;
}

std::string read_again(int fd) {
  std::string text;
  char step[4096];
  for (;;) {
    const ssize_t got = ::pread(fd, step, sizeof step, static_cast<off_t>(text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(step, static_cast<std::size_t>(got));
  }
}

std::string read_small(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  return read_again(fd.get());
}

bool write_small(const std::string& path, std::string_view text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return false;
  return ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::vector<std::string> lines_of(const std::string& path) {
  const std::string text = read_small(path);
  const auto lines = hpcbatch::lines_of(text);
  return {lines.begin(), lines.end()};
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(" \n", at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

bool make_folders_above(const std::string& path, std::size_t known) {
  for (std::size_t at = known; (at = path.find('/', at + 1)) != std::string::npos;) {
    if (::mkdir(path.substr(0, at).c_str(), 0700) != 0 && errno != EEXIST) return false;
  }
  return true;
}

namespace {

/// A task may nest folders deeper than a process has descriptors or stack.
constexpr unsigned kDeepest = 60;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

Folder open_folder(int parent, const char* name) {
  constexpr int kHow = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Fd fd(::openat(parent, name, kHow));
  if (!fd && errno == EACCES) {
    // A task may leave directories that not even their owner may list.
    ::fchmodat(parent, name, 0700, 0);
    fd = Fd(::openat(parent, name, kHow));
  }
  if (!fd) return nullptr;
  struct stat info {};
  if (::fstat(fd.get(), &info) == 0 && (info.st_mode & 0700) != 0700) ::fchmod(fd.get(), 0700);
  Folder folder(::fdopendir(fd.get()));
  if (folder) fd.release();  // closedir closes it
  return folder;
}

class Removal {
 public:
  /// All that is in it; what lies too deep is moved to its top, and removed from there.
  static bool empty(int parent, const char* name) {
    const Folder top = open_folder(parent, name);
    if (!top) return false;
    for (Removal removal(::dirfd(top.get()));;) {
      removal.moved_ = false;
      ::rewinddir(top.get());
      const bool all = removal.empty(top.get(), 0);
      if (!removal.moved_) return all;
    }
  }

 private:
  explicit Removal(int top) : top_(top) {}

  bool empty(DIR* folder, unsigned depth) {
    bool all = true;
    while (const dirent* entry = ::readdir(folder)) {
      if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
      if (!remove(::dirfd(folder), entry->d_name, depth)) all = false;
    }
    return all;
  }

  bool remove(int folder, const char* name, unsigned depth) {
    if (::unlinkat(folder, name, 0) == 0 || errno == ENOENT) return true;
    const Folder inner = open_folder(folder, name);
    if (!inner) return false;
    if (depth == kDeepest) return move_up(folder, name);
    return empty(inner.get(), depth + 1) && ::unlinkat(folder, name, AT_REMOVEDIR) == 0;
  }

  bool move_up(int folder, const char* name) {
    char aside[40];
    do {
      std::snprintf(aside, sizeof aside, ".hpcbatch-deep-%u", ++number_);
      if (::renameat(folder, name, top_, aside) == 0) return moved_ = true;
    } while (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR);
    return false;
  }

  int top_;
  bool moved_{false};
  unsigned number_{0};
};

}  // namespace

void Removals::add(std::string path) {
  if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return;
  waiting_.push_back(std::move(path));
  if (!running_) start();
}

void Removals::remove_now(const std::string& path) {
  waiting_.push_back(path);
  for (const std::string& each : waiting_) remove_tree(each);
  waiting_.clear();
}

void Removals::start() {
  running_ = true;
  helpers_.start(
      [paths = std::exchange(waiting_, {})] {
        std::string left;
        for (const std::string& path : paths) {
          if (!remove_tree(path)) left += " " + path;
        }
        return left;
      },
      " something: the process that removed it died",
      [this](const std::string& left) {
        running_ = false;
        if (!left.empty()) log_line("cannot remove all of" + left);
        if (!waiting_.empty()) start();
      });
}

bool remove_entry(int parent, const std::string& name) {
  if (::unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return true;
  if (errno != EISDIR && errno != EPERM) return false;
  return Removal::empty(parent, name.c_str()) &&
         ::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0;
}

bool empty_tree(const std::string& path) {
  return Removal::empty(AT_FDCWD, path.c_str());
}

bool remove_tree(const std::string& path) {
  return (empty_tree(path) && ::rmdir(path.c_str()) == 0) || errno == ENOENT;
}

}  // namespace hpcbatch::pilot
