#include "dropbox/publish.hpp"

#include "documents/text_check.hpp"
#include "dropbox/destination_rule.hpp"
#include "dropbox/transfer.hpp"
#include "dropbox/user_rights.hpp"
#include "posix/fd.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>

namespace hpcbatch {
namespace {

/// A destination taken apart: the directory that was checked is the one that is written to.
struct Target {
  Fd directory;
  std::string name;
  struct stat directory_status {};
  bool has_existing{false};
  struct stat existing {};
};

Error refused(const Publication& output, std::string_view why) {
  return Error{Error::Kind::Rejected, fmt::format("output '{}' cannot be put to {}: {}", output.key,
                                                  show_text(output.destination, 300), why)};
}

std::vector<std::string> without_links(const std::vector<std::string>& directories) {
  std::vector<std::string> real;
  for (const std::string& directory : directories) {
    std::array<char, PATH_MAX> buffer{};
    if (::realpath(directory.c_str(), buffer.data())) real.emplace_back(buffer.data());
  }
  return real;
}

/// What the superuser publishes belongs to the submitter; what another engine's user does belongs
/// to that user, and this says for whom.
constexpr const char* kSubmitter = "user.hpcbatch.submitter";

std::uint32_t submitter_of(const Target& target) {
  const uid_t us = ::geteuid();
  if (us == 0 || target.existing.st_uid != us) return target.existing.st_uid;
  std::array<char, 16> text{};
  const std::string path = fmt::format("/proc/self/fd/{}/{}", target.directory.get(), target.name);
  const ssize_t size = ::lgetxattr(path.c_str(), kSubmitter, text.data(), text.size());
  std::uint32_t user = us;
  if (size > 0) std::from_chars(text.data(), text.data() + size, user);
  return user;
}

/// The right to read it and, where we may give files away, the file.
Result<void> give_to_submitter(const Publication& output, const Target& target, int copy,
                               std::uint32_t owner, mode_t mode) {
  const uid_t us = ::geteuid();
  if (owner == us) {
    // As it is.
  } else if (us == 0) {
    const UserRights submitter = rights_of_user(owner);
    const bool folder_gives = target.directory_status.st_mode & S_ISGID;
    const gid_t group = target.has_existing                        ? target.existing.st_gid
                        : folder_gives || submitter.groups.empty() ? static_cast<gid_t>(-1)
                                                                   : submitter.groups.front();
    if (::fchown(copy, owner, group) != 0) {
      return refused(output,
                     fmt::format("cannot give it to user {}: {}", owner, std::strerror(errno)));
    }
    mode |= S_IRUSR;
  } else {
    struct stat status {};
    if (::fstat(copy, &status) != 0) return refused(output, std::strerror(errno));
    status.st_mode = S_IRGRP;
    mode |= has_right(rights_of_user(owner), status, S_IROTH) ? S_IRGRP : S_IRGRP | S_IROTH;
    // Where the file system cannot keep it, the next job of this user does not replace the file.
    const std::string user = std::to_string(owner);
    (void)::fsetxattr(copy, kSubmitter, user.data(), user.size(), 0);
  }
  if (::fchmod(copy, mode) != 0 || ::fsync(copy) != 0) return refused(output, std::strerror(errno));
  return {};
}

Result<Target> find_target(const Publication& output, const PublishRights& rights,
                           const std::vector<std::string>& allow) {
  if (const std::string why = why_no_destination(output.destination); !why.empty())
    return refused(output, why);
  const auto slash = output.destination.rfind('/');
  const std::string folder = slash == 0 ? "/" : output.destination.substr(0, slash);
  Target target;
  target.name = output.destination.substr(slash + 1);
  target.directory = Fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!target.directory)
    return refused(output, fmt::format("its folder cannot be opened: {}", std::strerror(errno)));
  const int directory = target.directory.get();

  DestinationFacts facts;
  if (::fstat(directory, &target.directory_status) != 0)
    return refused(output, std::strerror(errno));
  facts.directory_owner = target.directory_status.st_uid;
  facts.directory_mode = target.directory_status.st_mode;
  facts.real_directory = real_path_of(directory);
  if (facts.real_directory.empty())
    return refused(output, fmt::format("its folder has no name: {}", std::strerror(errno)));
  const UserRights submitter = rights_of_user(rights.owner);
  facts.submitter_can_write = has_right(submitter, target.directory_status, S_IWOTH) &&
                              can_reach(submitter, facts.real_directory + "/" + target.name);
  facts.is_engines_user = rights.owner == ::geteuid();
  struct stat dropbox {};
  facts.is_dropbox = !rights.dropbox.empty() && ::stat(rights.dropbox.c_str(), &dropbox) == 0 &&
                     dropbox.st_dev == target.directory_status.st_dev &&
                     dropbox.st_ino == target.directory_status.st_ino;
  if (::fstatat(directory, target.name.c_str(), &target.existing, AT_SYMLINK_NOFOLLOW) == 0) {
    using Existing = DestinationFacts::Existing;
    target.has_existing = true;
    facts.existing_owner = submitter_of(target);
    facts.existing = S_ISREG(target.existing.st_mode)   ? Existing::File
                     : S_ISLNK(target.existing.st_mode) ? Existing::Link
                                                        : Existing::Other;
  } else if (errno != ENOENT) {
    return refused(output, std::strerror(errno));
  }
  if (const std::string why = why_not_there(facts, rights.owner, allow); !why.empty())
    return refused(output, why);
  if (::faccessat(directory, ".", W_OK | X_OK, AT_EACCESS) != 0) {
    return refused(output, fmt::format("we cannot write its folder: {}", std::strerror(errno)));
  }
  return target;
}

Result<std::vector<Target>> find_targets(const std::vector<Publication>& outputs,
                                         const PublishRights& rights) {
  const std::vector<std::string> allow = without_links(rights.allow);
  std::vector<Target> targets;
  for (const Publication& output : outputs) {
    auto target = find_target(output, rights, allow);
    if (!target) return target.error();
    for (const Target& other : targets) {
      if (other.name == target->name &&
          other.directory_status.st_dev == target->directory_status.st_dev &&
          other.directory_status.st_ino == target->directory_status.st_ino) {
        return refused(output, "another output of this job goes to the same file");
      }
    }
    targets.push_back(std::move(*target));
  }
  return targets;
}

/// A file beside the destination, gone again unless it was renamed.
class Aside {
 public:
  Aside(int directory, std::string name) : directory_(directory), name_(std::move(name)) {}
  Aside(Aside&& other) noexcept
      : directory_(std::exchange(other.directory_, -1)), name_(std::move(other.name_)) {}
  Aside& operator=(Aside&&) = delete;
  ~Aside() {
    if (directory_ >= 0) ::unlinkat(directory_, name_.c_str(), 0);
  }
  const std::string& name() const { return name_; }
  /// Replaces only what was found there before; else false with errno.
  bool rename_to(const Target& target) {
    if (!(target.has_existing ? replace(target)
                              : rename_to_nothing(directory_, name_, target.name))) {
      return false;
    }
    directory_ = -1;
    return true;
  }

 private:
  bool replace(const Target& target) const {
    struct stat now {};
    if (::fstatat(directory_, target.name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 &&
        (now.st_dev != target.existing.st_dev || now.st_ino != target.existing.st_ino)) {
      errno = EEXIST;
      return false;
    }
    return ::renameat(directory_, name_.c_str(), directory_, target.name.c_str()) == 0;
  }
  int directory_;
  std::string name_;
};

std::string name_aside() {
  static std::atomic<unsigned> number{0};
  struct timespec now {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return fmt::format(".hpcbatch-{}-{}-{}.part", ::getpid(), now.tv_nsec, number++);
}

Result<Aside> make_ready(const Publication& output, const Target& target, std::uint32_t owner) {
  const Fd staged(::open(output.staged.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!staged && errno == ENOENT) {
    return Error{Error::Kind::Rejected,
                 fmt::format("output_missing: the tool did not write '{}'", output.key)};
  }
  if (!staged || ::fstat(staged.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Error{Error::Kind::Rejected,
                 fmt::format("output_invalid: what the tool wrote as '{}' is not a regular file",
                             output.key)};
  }
  const int directory = target.directory.get();
  const mode_t mode = target.has_existing ? target.existing.st_mode & 0777 : status.st_mode & 0777;
  const std::string name = name_aside();
  const Fd copy(::openat(directory, name.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!copy)
    return refused(output, fmt::format("cannot create a file beside it: {}", std::strerror(errno)));
  Aside aside(directory, name);
  if (const auto copied = copy_content(staged.get(), copy.get()); !copied) {
    return Error{copied.error().kind, refused(output, copied.error().text).text};
  }
  if (auto given = give_to_submitter(output, target, copy.get(), owner, mode); !given)
    return given.error();
  return aside;
}

}  // namespace

Result<void> check_destinations(const std::vector<Publication>& outputs,
                                const PublishRights& rights) {
  const auto targets = find_targets(outputs, rights);
  if (!targets) return targets.error();
  return {};
}

Result<void> publish(const std::vector<Publication>& outputs, const PublishRights& rights) {
  const auto targets = find_targets(outputs, rights);
  if (!targets) return targets.error();
  std::vector<Aside> ready;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    auto aside = make_ready(outputs[i], (*targets)[i], rights.owner);
    if (!aside) return aside.error();
    ready.push_back(std::move(*aside));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Target& target = (*targets)[i];
    if (ready[i].rename_to(target)) continue;
    const Error error = refused(outputs[i], std::strerror(errno));
    for (std::size_t done = 0; done < i; ++done) {
      ::unlinkat((*targets)[done].directory.get(), (*targets)[done].name.c_str(), 0);
    }
    return error;
  }
  for (const Target& target : *targets) ::fsync(target.directory.get());
  return {};
}

}  // namespace hpcbatch
