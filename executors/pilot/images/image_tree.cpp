#include "pilot/images/image_tree.hpp"

#include "pilot/base/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <deque>
#include <memory>
#include <sstream>

namespace hpcbatch::pilot {
namespace {

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr unsigned kMostLinks = 40;  // as the kernel has it
constexpr unsigned kDeepest = 250;   // two descriptors each while they are emptied
constexpr const char* kTooDeep = "it has more than 250 folders one in another";
/// Others than the user write in no image, and nothing in it is started as somebody else.
constexpr mode_t kModes = 0755;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

[[noreturn]] void refuse(const std::string& what, int error) {
  throw BadImage("cannot " + what + ": " + std::strerror(error));
}

std::string link_target(int folder, const std::string& name) {
  std::string target(PATH_MAX, '\0');
  const ssize_t size = ::readlinkat(folder, name.c_str(), target.data(), target.size());
  target.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return target;
}

/// None, or trouble where it was to be made.
Fd missing_folder(const ImagePath& path, int error, bool make) {
  if (make || (error != ENOENT && error != ENOTDIR))
    refuse("open the folder of " + shown(path), error);
  return {};
}

std::deque<std::string> steps_of(const std::string& text) {
  std::deque<std::string> steps;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, '/');) {
    if (!part.empty() && part != ".") steps.push_back(part);
  }
  return steps;
}

}  // namespace

ImagePath image_path(const std::string& name) {
  const std::deque<std::string> steps = steps_of(name);
  if (std::find(steps.begin(), steps.end(), "..") != steps.end())
    throw BadImage("its entry " + name + " has '..' in its name");
  if (steps.size() > kDeepest) throw BadImage(kTooDeep);
  return {steps.begin(), steps.end()};
}

std::string shown(const ImagePath& path) {
  std::string text;
  for (const std::string& step : path) text += (text.empty() ? "" : "/") + step;
  return text;
}

ImageTree::ImageTree(const std::string& folder, Walk walk) : walk_(walk) {
  if (::mkdir(folder.c_str(), 0755) != 0) refuse("make " + folder, errno);
  root_ = Fd(::open(folder.c_str(), kFolder));
  if (!root_) refuse("open " + folder, errno);
}

void ImageTree::begin_layer() {
  made_.clear();
  folder_times_.clear();
}

void ImageTree::end_layer() {
  for (const auto& [path, changed] : folder_times_) {
    const timespec times[2] = {changed, changed};
    // It may have been replaced since; whose time is odd, or not taken, is none the worse.
    if (const Fd there = folder(path, false)) ::futimens(there.get(), times);
  }
}

Fd ImageTree::folder_by_kernel(const ImagePath& path) const {
  open_how how{};
  how.flags = kFolder & ~O_NOFOLLOW;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  const std::string name = path.empty() ? "." : shown(path);
  return Fd(static_cast<int>(::syscall(SYS_openat2, root_.get(), name.c_str(), &how, sizeof how)));
}

/// The folder of that name in the one that is open, never through a link; not opened: errno.
Fd ImageTree::next_folder(int at, const std::string& name, bool make) {
  Fd next(::openat(at, name.c_str(), kFolder));
  if (next || errno != ENOENT || !make) return next;
  if (::mkdirat(at, name.c_str(), 0755) != 0) return {};
  was_made(at, name);
  return Fd(::openat(at, name.c_str(), kFolder));
}

/// No step is taken but from a folder that is open, to one that is no link: links are read, and
/// what they say is walked from the root on.
Fd ImageTree::folder_by_steps(const ImagePath& path, bool make) {
  std::vector<Fd> way;
  unsigned links = 0;
  for (std::deque<std::string> ahead(path.begin(), path.end()); !ahead.empty();) {
    const std::string step = std::move(ahead.front());
    ahead.pop_front();
    if (step == "..") {
      if (!way.empty()) way.pop_back();
      continue;
    }
    const int at = way.empty() ? root_.get() : way.back().get();
    if (Fd next = next_folder(at, step, make)) {
      way.push_back(std::move(next));
      if (way.size() > kDeepest) throw BadImage(kTooDeep);
      continue;
    }
    const int error = errno;
    const std::string target = link_target(at, step);
    if (target.empty()) return missing_folder(path, error, make);
    if (++links > kMostLinks) refuse("open the folder of " + shown(path), ELOOP);
    if (target.front() == '/') way.clear();
    const std::deque<std::string> said = steps_of(target);
    ahead.insert(ahead.begin(), said.begin(), said.end());
  }
  return way.empty() ? Fd(::openat(root_.get(), ".", kFolder)) : std::move(way.back());
}

Fd ImageTree::folder(const ImagePath& path, bool make) {
  if (walk_ == Walk::Kernel) {
    if (Fd there = folder_by_kernel(path)) return there;
    if (errno == ENOSYS || errno == EPERM) walk_ = Walk::Steps;
  }
  return folder_by_steps(path, make);
}

Fd ImageTree::parent(const ImagePath& path) {
  if (path.empty()) throw BadImage("one of its entries has the name of its root");
  return folder({path.begin(), path.end() - 1}, true);
}

void ImageTree::was_made(int folder, const std::string& name) {
  struct stat facts {};
  if (::fstatat(folder, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0) made_.insert(facts.st_ino);
}

void ImageTree::make_room(int folder, const ImagePath& path) {
  if (!remove_entry(folder, path.back())) refuse("replace " + shown(path), errno);
}

void ImageTree::put_folder(const ImagePath& path, mode_t mode, timespec changed) {
  if (path.empty()) return;
  const Fd in = parent(path);
  const char* name = path.back().c_str();
  struct stat there {};
  if (::fstatat(in.get(), name, &there, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(there.st_mode))
    make_room(in.get(), path);
  if (::mkdirat(in.get(), name, 0700) != 0 && errno != EEXIST)
    refuse("make the folder " + shown(path), errno);
  const Fd made(::openat(in.get(), name, kFolder));
  // The user has to be able to remove what is in it.
  if (!made || ::fchmod(made.get(), (mode & kModes) | 0700) != 0)
    refuse("make the folder " + shown(path), errno);
  was_made(in.get(), path.back());
  folder_times_.emplace_back(path, changed);
}

Fd ImageTree::put_file(const ImagePath& path, mode_t mode) {
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const Fd in = parent(path);
  Fd made(::openat(in.get(), path.back().c_str(), kNew, 0600));
  if (!made && errno == EEXIST) {
    make_room(in.get(), path);
    made = Fd(::openat(in.get(), path.back().c_str(), kNew, 0600));
  }
  if (!made || ::fchmod(made.get(), (mode & kModes) | 0600) != 0)
    refuse("make the file " + shown(path), errno);
  was_made(in.get(), path.back());
  return made;
}

void ImageTree::put_link(const ImagePath& path, const std::string& target) {
  const Fd in = parent(path);
  make_room(in.get(), path);
  if (::symlinkat(target.c_str(), in.get(), path.back().c_str()) != 0)
    refuse("make the link " + shown(path), errno);
  was_made(in.get(), path.back());
}

void ImageTree::put_hard_link(const ImagePath& path, const ImagePath& target) {
  const std::string what = "make " + shown(path) + ", another name of " + shown(target);
  if (target.empty()) refuse(what, EISDIR);
  const Fd from = folder({target.begin(), target.end() - 1}, false);
  struct stat facts {};
  if (!from || ::fstatat(from.get(), target.back().c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0)
    refuse(what, ENOENT);
  if (!S_ISREG(facts.st_mode) && !S_ISLNK(facts.st_mode)) refuse(what, EISDIR);
  const Fd in = parent(path);
  struct stat there {};
  if (::fstatat(in.get(), path.back().c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) {
    if (there.st_ino == facts.st_ino && there.st_dev == facts.st_dev) return;
    make_room(in.get(), path);
  }
  if (::linkat(from.get(), target.back().c_str(), in.get(), path.back().c_str(), 0) != 0)
    refuse(what, errno);
  was_made(in.get(), path.back());
}

/// What an earlier layer has at a name; a folder stays for what this layer has put into it.
void ImageTree::purge_entry(int folder, const std::string& name, unsigned depth) {
  struct stat facts {};
  if (::fstatat(folder, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return;
  const bool is_folder = S_ISDIR(facts.st_mode);
  if (is_folder) {
    const Fd inner(::openat(folder, name.c_str(), kFolder));
    if (!inner) refuse("take away " + name, errno);
    purge(inner.get(), depth + 1);
  }
  if (made_.contains(facts.st_ino)) return;
  if (::unlinkat(folder, name.c_str(), is_folder ? AT_REMOVEDIR : 0) != 0 && errno != ENOTEMPTY &&
      errno != EEXIST)
    refuse("take away " + name, errno);
}

void ImageTree::purge(int folder, unsigned depth) {
  if (depth > kDeepest) throw BadImage(kTooDeep);
  const int own = ::openat(folder, ".", kFolder);
  const std::unique_ptr<DIR, CloseFolder> listed(own < 0 ? nullptr : ::fdopendir(own));
  if (!listed) refuse("take away what an earlier layer has", errno);
  while (const dirent* entry = ::readdir(listed.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") purge_entry(folder, name, depth);
  }
}

void ImageTree::take_away(const ImagePath& path) {
  if (path.empty()) return;
  if (const Fd in = folder({path.begin(), path.end() - 1}, false))
    purge_entry(in.get(), path.back(), 0);
}

void ImageTree::empty_folder(const ImagePath& path) {
  if (const Fd there = folder(path, false)) purge(there.get(), 0);
}

bool ImageTree::has(const ImagePath& path) {
  const Fd in = path.empty() ? Fd() : folder({path.begin(), path.end() - 1}, false);
  struct stat facts {};
  return in && ::fstatat(in.get(), path.back().c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace hpcbatch::pilot
