#include "wire/outputs.hpp"

#include "posix/files.hpp"
#include "wire/checksum.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>
#include <variant>

namespace hpcbatch::wire {
namespace {

constexpr mode_t kPlainMode = 0777;
constexpr mode_t kSpecialMode = S_ISUID | S_ISGID | S_ISVTX;

/// Opens `path` below `directory` step by step, so that no link on the way leads elsewhere.
Fd open_below(const std::string& directory, std::string_view path, int flags) {
  Fd at(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  while (at) {
    const std::size_t slash = path.find('/');
    const std::string name(path.substr(0, slash));
    if (name.empty() || name == "..") {
      errno = EINVAL;
      return {};
    }
    if (slash == std::string_view::npos) {
      return Fd(::openat(at.get(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
    }
    at = Fd(::openat(at.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    path.remove_prefix(slash + 1);
  }
  return {};
}

/// The folder of "a/b/c", "a/b" or ".", and the name in it.
std::pair<std::string, std::string> last_step(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

OutputRefusal refuse(Failure failure, const Output& output, const std::string& why) {
  const std::string name = output.name().empty() ? output.staged() : output.name();
  return {failure,
          "output " + name + " (" + output.staged() + " to " + output.destination() + "): " + why};
}

OutputRefusal refuse(Failure failure, const Output& output, const char* what, int error) {
  return refuse(failure, output, std::string(what) + ": " + std::strerror(error));
}

/// What the task may leave out and has left out.
bool is_left_out(const std::string& directory, const Output& output) {
  return output.optional() && !open_below(directory, output.staged(), O_PATH) && errno == ENOENT;
}

/// Opens it for reading if it is what an output may be.
std::variant<Fd, OutputRefusal> open_output(const std::string& directory, const Output& output) {
  const auto [inner, name] = last_step(output.staged());
  const Fd folder = open_below(directory, inner, O_PATH | O_DIRECTORY);
  const int error = folder ? 0 : errno;
  RegularFile file;
  if (folder) file = open_regular(folder.get(), name);
  switch (folder ? file.error : error) {
    case 0:
      return std::move(file.fd);
    case ENOENT:
      return refuse(Failure::OutputMissing, output, "the task did not make it");
    case ELOOP:
    case ENOTDIR:
      return refuse(Failure::OutputInvalid, output, "it is a link or lies behind one");
    case kNotRegular:
      return refuse(Failure::OutputInvalid, output, "it is not a regular file");
    default:
      return refuse(Failure::OutputInvalid, output, "cannot open it", folder ? file.error : error);
  }
}

/// The same each time, so that what one who was killed had begun is replaced by the next.
std::string aside_name(const std::string& directory, const Output& output) {
  ContentHash hash;
  hash.add(directory + '\n' + output.staged());
  return ".hpcbatch-" + hash.digits().substr(0, 16) + ".tmp";
}

/// One output on its way: beside its destination under a name that nobody else has, until all are
/// that far.
struct Staged {
  const Output* output;
  int folder;
  std::string name;
  std::string aside;
  bool published{false};
};

const char* kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a directory";
    case S_IFLNK:
      return "a link; name the file that it leads to";
    case S_IFIFO:
      return "a FIFO";
    case S_IFSOCK:
      return "a socket";
    default:
      return "a device";
  }
}

/// Nothing but a file, or nothing at all, is ever replaced.
std::optional<OutputRefusal> check_replaced(const Staged& staged) {
  struct stat there {};
  if (::fstatat(staged.folder, staged.name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0 ||
      S_ISREG(there.st_mode))
    return std::nullopt;
  return refuse(Failure::StageOutFailed, *staged.output,
                std::string("the destination is ") + kind_of(there.st_mode));
}

using Folders = std::map<std::string, Fd>;
// So many outputs wait for the disk once, not each by itself.
constexpr std::size_t kSyncedTogether = 64;

std::optional<OutputRefusal> open_destination(Staged& staged, Folders& folders) {
  const Output& output = *staged.output;
  const std::string& destination = output.destination();
  const std::size_t slash = destination.rfind('/');
  if (!destination.starts_with('/') || slash + 1 == destination.size()) {
    return refuse(Failure::StageOutFailed, output,
                  "the destination is not an absolute path of a file");
  }
  staged.name = destination.substr(slash + 1);
  const std::string folder = destination.substr(0, std::max<std::size_t>(slash, 1));
  Fd& opened = folders[folder];
  if (!opened) opened = Fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  staged.folder = opened.get();
  if (!opened)
    return refuse(Failure::StageOutFailed, output, "cannot open the destination's directory",
                  errno);
  struct stat info {};
  if (::fstat(staged.folder, &info) != 0) {
    return refuse(Failure::StageOutFailed, output, "cannot look at the destination's directory",
                  errno);
  }
  if (output.check_owner() && info.st_uid != output.owner()) {
    return refuse(Failure::StageOutFailed, output,
                  "the destination's directory belongs to user " + std::to_string(info.st_uid) +
                      ", not to user " + std::to_string(output.owner()) + " who asked for it");
  }
  if (output.check_owner() && (info.st_mode & 022) != 0) {
    return refuse(Failure::StageOutFailed, output,
                  "others than its owner may write in the destination's directory");
  }
  return check_replaced(staged);
}

std::optional<OutputRefusal> stage_beside(Staged& staged, const std::string& directory,
                                          bool syncs) {
  const Output& output = *staged.output;
  auto opened = open_output(directory, output);
  if (auto* refusal = std::get_if<OutputRefusal>(&opened)) return *refusal;
  const Fd& source = std::get<Fd>(opened);
  const auto [inner, last] = last_step(output.staged());
  const Fd from = open_below(directory, inner, O_RDONLY | O_DIRECTORY);
  struct stat before {};
  if (::fstat(source.get(), &before) != 0)
    return refuse(Failure::StageOutFailed, output, "cannot look at it", errno);
  // Under another name of its own the task's user could go on changing it.
  const bool is_shared = before.st_nlink > 1;
  if (!is_shared && from &&
      ::renameat(from.get(), last.c_str(), staged.folder, staged.aside.c_str()) == 0) {
    // Nothing of the task lives any more, but what arrived is to be what was checked.
    struct stat after {};
    const bool same =
        ::fstatat(staged.folder, staged.aside.c_str(), &after, AT_SYMLINK_NOFOLLOW) == 0 &&
        before.st_ino == after.st_ino && before.st_dev == after.st_dev;
    if (!same) return refuse(Failure::OutputInvalid, output, "it changed while it was moved");
    if ((before.st_mode & kSpecialMode) != 0 &&
        ::fchmod(source.get(), before.st_mode & kPlainMode) != 0)
      return refuse(Failure::StageOutFailed, output, "cannot take its special rights away", errno);
    if (syncs && ::fsync(source.get()) != 0)
      return refuse(Failure::StageOutFailed, output, "cannot sync it", errno);
    return std::nullopt;
  }
  if (!is_shared && errno != EXDEV)
    return refuse(Failure::StageOutFailed, output, "cannot move it there", errno);
  ::unlinkat(staged.folder, staged.aside.c_str(), 0);
  Fd copy(::openat(staged.folder, staged.aside.c_str(),
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!copy) return refuse(Failure::StageOutFailed, output, "cannot make a file there", errno);
  int error = copy_all(source.get(), copy.get());
  if (error == 0 && ::fchmod(copy.get(), before.st_mode & kPlainMode) != 0) error = errno;
  if (error == 0 && syncs && ::fsync(copy.get()) != 0) error = errno;
  // A full disk behind NFS may be told of only here.
  if (error == 0 && ::close(copy.release()) != 0) error = errno;
  if (error != 0) return refuse(Failure::StageOutFailed, output, "cannot copy it there", error);
  return std::nullopt;
}

void take_back(const std::vector<Staged>& all) {
  for (const Staged& staged : all) {
    if (staged.folder < 0) continue;
    ::unlinkat(staged.folder, staged.published ? staged.name.c_str() : staged.aside.c_str(), 0);
  }
}

}  // namespace

std::optional<OutputRefusal> check_outputs(const std::string& directory,
                                           const std::vector<Output>& outputs) {
  for (const Output& output : outputs) {
    if (is_left_out(directory, output)) continue;
    auto opened = open_output(directory, output);
    if (auto* refusal = std::get_if<OutputRefusal>(&opened)) return *refusal;
  }
  return std::nullopt;
}

std::vector<Output> outputs_made(const std::string& directory, std::vector<Output> outputs) {
  std::erase_if(outputs, [&](const Output& output) { return is_left_out(directory, output); });
  return outputs;
}

std::vector<Output> outputs_of_failure(const std::string& directory, std::vector<Output> outputs) {
  std::erase_if(outputs, [&](const Output& output) {
    return !output.of_failure() || is_left_out(directory, output) ||
           check_outputs(directory, {output});
  });
  return outputs;
}

std::optional<OutputRefusal> publish_outputs(const std::string& directory,
                                             const std::vector<Output>& outputs) {
  std::vector<Staged> all;
  for (const Output& output : outputs) {
    if (!is_left_out(directory, output))
      all.push_back({&output, -1, {}, aside_name(directory, output), false});
  }
  Folders folders;
  for (Staged& staged : all) {
    if (auto refusal = open_destination(staged, folders)) return refusal;
  }
  const bool syncs_each = all.size() < kSyncedTogether;
  for (Staged& staged : all) {
    if (auto refusal = stage_beside(staged, directory, syncs_each)) {
      take_back(all);
      return refusal;
    }
  }
  for (const auto& [path, folder] : folders) {
    if (syncs_each || ::syncfs(folder.get()) == 0) continue;
    auto refusal = refuse(Failure::StageOutFailed, *all.front().output, "cannot sync it", errno);
    take_back(all);
    return refusal;
  }
  for (Staged& staged : all) {
    // It may have come there since.
    if (auto refusal = check_replaced(staged)) {
      take_back(all);
      return refusal;
    }
    if (::renameat(staged.folder, staged.aside.c_str(), staged.folder, staged.name.c_str()) != 0) {
      auto refusal =
          refuse(Failure::StageOutFailed, *staged.output, "cannot give it its name", errno);
      take_back(all);
      return refusal;
    }
    staged.published = true;
  }
  for (const auto& [path, folder] : folders) ::fsync(folder.get());
  return std::nullopt;
}

}  // namespace hpcbatch::wire
