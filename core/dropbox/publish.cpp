#include "dropbox/publish.hpp"

#include "documents/texts.hpp"
#include "dropbox/job_folder.hpp"
#include "dropbox/job_rights.hpp"
#include "posix/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <functional>
#include <utility>

namespace hpcbatch {
namespace {

/// A destination taken apart: the directory that was checked is the one that is written to.
struct Target {
  Fd directory;
  std::string name;
  struct stat directory_status {};
  bool has_existing{false};
  struct stat existing {};
  bool is_reached{true};  ///< the submitter can go there himself
  UserRights as;          ///< in whose name it is written

  /// 0, or errno.
  int in_his_name(const std::function<int()>& work, Fd* opened = nullptr) const {
    return as_user(as, work, opened);
  }
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

/// The group of what stood there, of the folder, or the submitter's first; -1: as it is.
gid_t group_for(const Target& target, const UserRights& submitter) {
  if (target.has_existing) return target.existing.st_gid;
  const bool folder_gives = target.directory_status.st_mode & S_ISGID;
  return folder_gives || submitter.groups.empty() ? static_cast<gid_t>(-1)
                                                  : submitter.groups.front();
}

/// Root's: what the submitter has not made himself is given to him.
int give_away(const Target& target, int copy, const UserRights& submitter, mode_t mode) {
  struct stat now {};
  if (::fstat(copy, &now) != 0) return errno;
  const gid_t group = group_for(target, submitter);
  const bool is_his = now.st_uid == submitter.user;
  const bool is_right = group == static_cast<gid_t>(-1) || now.st_gid == group;
  if ((!is_his || !is_right) && ::fchown(copy, submitter.user, group) != 0) return errno;
  return target.in_his_name([&] { return ::fchmod(copy, mode); });
}

/// The right to read it and, where we may give files away, the file.
Result<void> give_to_submitter(const Publication& output, const Target& target, int copy,
                               std::uint32_t owner, mode_t mode) {
  const uid_t us = ::geteuid();
  if (owner != us && us == 0) {
    if (const int error = give_away(target, copy, rights_of_user(owner), mode | S_IRUSR))
      return refused(output,
                     fmt::format("cannot give it to user {}: {}", owner, std::strerror(error)));
  } else if (owner != us) {
    struct stat status {};
    if (::fstat(copy, &status) != 0) return refused(output, std::strerror(errno));
    status.st_mode = S_IRGRP;
    mode |= has_right(rights_of_user(owner), status, {}, S_IROTH) ? S_IRGRP : S_IRGRP | S_IROTH;
    // Where the file system cannot keep it, the next job of this user does not replace the file.
    const std::string user = std::to_string(owner);
    (void)::fsetxattr(copy, kSubmitter, user.data(), user.size(), 0);
  }
  const bool is_given = owner != us && us == 0;
  if ((!is_given && ::fchmod(copy, mode) != 0) || ::fsync(copy) != 0)
    return refused(output, std::strerror(errno));
  return {};
}

/// Opens the folder of a destination in the submitter's name where we may, else in ours.
Result<Target> open_folder(const Publication& output, const UserRights& submitter) {
  if (const std::string why = why_no_destination(output.destination); !why.empty())
    return refused(output, why);
  const auto slash = output.destination.rfind('/');
  const std::string folder = slash == 0 ? "/" : output.destination.substr(0, slash);
  const UserRights us{.user = ::geteuid(), .groups = {}};
  Target target;
  target.as = us;
  target.name = output.destination.substr(slash + 1);
  const auto open = [&folder](int how) {
    return [&folder, how] { return ::open(folder.c_str(), how | O_DIRECTORY | O_CLOEXEC); };
  };
  const UserRights& first = may_be_others() ? submitter : us;
  int error = as_user(first, open(O_RDONLY), &target.directory);
  if (error == EACCES) error = as_user(first, open(O_PATH), &target.directory);
  if (error == EACCES && first.user != us.user) {
    target.is_reached = false;  // it may be allowed by name
    error = as_user(us, open(O_RDONLY), &target.directory);
  }
  if (error != 0)
    return refused(output, fmt::format("its folder cannot be opened: {}", std::strerror(error)));
  if (::fstat(target.directory.get(), &target.directory_status) != 0)
    return refused(output, std::strerror(errno));
  return target;
}

/// Asks the kernel where we may be the submitter.
bool can_write_folder(const Target& target, const UserRights& submitter,
                      const std::string& real_directory) {
  const int directory = target.directory.get();
  if (may_be_others() || submitter.user == ::geteuid()) {
    return as_user(submitter, [directory] {
             return ::faccessat(directory, ".", W_OK | X_OK, AT_EACCESS);
           }) == 0;
  }
  return has_right(submitter, target.directory_status, read_acl(real_directory.c_str()), S_IWOTH) &&
         can_reach(submitter, real_directory + "/.");
}

Result<Target> find_target(const Publication& output, const PublishRights& rights,
                           const std::vector<std::string>& allow) {
  const UserRights submitter = rights_of_user(rights.owner);
  auto opened = open_folder(output, submitter);
  if (!opened) return opened;
  Target& target = *opened;
  const int directory = target.directory.get();

  DestinationFacts facts;
  facts.directory_owner = target.directory_status.st_uid;
  facts.directory_mode = target.directory_status.st_mode;
  facts.real_directory = real_path_of(directory);
  if (facts.real_directory.empty())
    return refused(output, fmt::format("its folder has no name: {}", std::strerror(errno)));
  const bool is_allowed = std::any_of(allow.begin(), allow.end(), [&](const std::string& folder) {
    return is_below(facts.real_directory, folder);
  });
  // He is told no more of it than he could find out.
  if (!target.is_reached && !is_allowed)
    return refused(output, fmt::format("its folder cannot be opened: {}", std::strerror(EACCES)));
  facts.submitter_can_write =
      target.is_reached && can_write_folder(target, submitter, facts.real_directory);
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
  // A folder that is allowed by name and not his to write is written in our own.
  if (may_be_others() && (facts.submitter_can_write || !is_allowed)) target.as = submitter;
  const int error = target.in_his_name(
      [directory] { return ::faccessat(directory, ".", W_OK | X_OK, AT_EACCESS); });
  if (error != 0) {
    return refused(output, fmt::format("user {} cannot write its folder: {}", target.as.user,
                                       std::strerror(error)));
  }
  return opened;
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

/// A file beside the destination, gone again unless it was renamed.  The target must outlive it.
class Aside {
 public:
  Aside(const Target& target, std::string name) : target_(&target), name_(std::move(name)) {}
  Aside(Aside&& other) noexcept
      : target_(std::exchange(other.target_, nullptr)), name_(std::move(other.name_)) {}
  Aside& operator=(Aside&&) = delete;
  ~Aside() {
    if (!target_) return;
    (void)target_->in_his_name(
        [&] { return ::unlinkat(target_->directory.get(), name_.c_str(), 0); });
  }
  /// Replaces only what was found there before; else errno says why not.
  int rename() {
    const Target& target = *target_;
    const int error = target.in_his_name([&] {
      const bool done = target.has_existing
                            ? replace()
                            : rename_to_nothing(target.directory.get(), name_, target.name);
      return done ? 0 : -1;
    });
    if (error == 0) target_ = nullptr;
    return error;
  }

 private:
  bool replace() const {
    const Target& target = *target_;
    const int directory = target.directory.get();
    struct stat now {};
    if (::fstatat(directory, target.name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 &&
        (now.st_dev != target.existing.st_dev || now.st_ino != target.existing.st_ino)) {
      errno = EEXIST;
      return false;
    }
    return ::renameat(directory, name_.c_str(), directory, target.name.c_str()) == 0;
  }
  const Target* target_;
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
  Fd copy;
  const auto create = [&] {
    return ::openat(directory, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    0600);
  };
  if (const int error = target.in_his_name(create, &copy))
    return refused(output, fmt::format("cannot create a file beside it: {}", std::strerror(error)));
  Aside aside(target, name);
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
    const int error = ready[i].rename();
    if (error == 0) continue;
    for (std::size_t done = 0; done < i; ++done) {
      const Target& target = (*targets)[done];
      (void)target.in_his_name(
          [&] { return ::unlinkat(target.directory.get(), target.name.c_str(), 0); });
    }
    return refused(outputs[i], std::strerror(error));
  }
  for (const Target& target : *targets) ::fsync(target.directory.get());
  return {};
}

}  // namespace hpcbatch
