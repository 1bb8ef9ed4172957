// Files and folders of a node: small texts of the kernel, folders on the way to a file, trees
// that are removed.
#pragma once

#include "posix/files.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace hpcbatch::pilot {

// Work that may take long (copying outputs, removing trees) in a process of its own, so that the
// pilot's loop goes on.

class Helpers {
 public:
  /// `started` and `done` hear of the process.
  explicit Helpers(std::function<void(pid_t)> started) : started_(std::move(started)) {}

  /// `work` runs in a child and returns what `done` gets here; where the child dies instead, `done`
  /// gets `died`.
  void start(const std::function<std::string()>& work, std::string died,
             std::function<void(const std::string&)> done);
  /// A child of the pilot was reaped: true if it was one of these.
  bool reaped(pid_t pid, int status);
  bool any() const { return !running_.empty(); }

 private:
  struct Helper {
    Fd answer;
    std::string died;
    std::function<void(const std::string&)> done;
  };
  std::function<void(pid_t)> started_;
  std::map<pid_t, Helper> running_;
};

// Small texts that the kernel makes when they are read: the files of /proc and /sys.

/// Empty where it cannot be read.
std::string read_small(const std::string& path);
/// The same of a file that is kept open, from its start.
std::string read_again(int fd);
/// False with errno set where the kernel refused.
bool write_small(const std::string& path, std::string_view text);

std::vector<std::string> lines_of(const std::string& path);
/// Separated by blanks or line ends.
std::vector<std::string> words_of(std::string_view text);

// Folders on the way to a file, the owner's alone.

/// The folders above `path` that lie behind its first `known` bytes, as far as they are not there;
/// false with errno set where one cannot be made.
bool make_folders_above(const std::string& path, std::size_t known);

// Removes a directory with all in it, never following a link out of it.

/// Directories that nobody needs any more, removed one after the other in the background.
class Removals {
 public:
  explicit Removals(Helpers& helpers) : helpers_(helpers) {}
  void add(std::string path);
  /// At the end, when nothing runs any more: everything that waits, and this.
  void remove_now(const std::string& path);

 private:
  void start();

  Helpers& helpers_;
  std::vector<std::string> waiting_;
  bool running_{false};
};

/// False where something of it is left.
bool remove_tree(const std::string& path);
/// A file, a link or a whole directory `name` in the directory `parent`; true where it is not
/// there.
bool remove_entry(int parent, const std::string& name);
/// What is in it, and not the directory itself.
bool empty_tree(const std::string& path);

}  // namespace hpcbatch::pilot
