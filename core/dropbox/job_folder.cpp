#include "dropbox/job_folder.hpp"

#include "accounts/accounts.hpp"
#include "documents/texts.hpp"
#include "documents/view.hpp"
#include "documents/yaml.hpp"
#include "dropbox/job_rights.hpp"
#include "posix/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

constexpr std::size_t kLargestTemplate = std::size_t{1} << 20;
constexpr std::size_t kLargestTaken = std::size_t{17} << 20;
constexpr const char* kTakenEnding = ".taken";

std::string short_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  const std::string host = name.data();
  return host.substr(0, host.find('.'));
}

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

constexpr std::size_t kLongest = 120;
constexpr std::size_t kLongestEnding = 16;

/// The ending tells a tool what kind of file it is, so it outlives all changes of the name.
std::pair<std::string, std::string> parted(const std::string& name) {
  const auto dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0 || name.size() - dot > kLongestEnding) return {name, ""};
  return {name.substr(0, dot), name.substr(dot)};
}

struct OpenInput {
  Fd descriptor;
  struct stat status {};
};

Error missing(const std::string& path, std::string_view why) {
  return Error{Error::Kind::Rejected,
               fmt::format("input_missing: cannot use {}: {}", show_text(path, 300), why)};
}

/// Looks at the place of the open file itself, since a link of the reader's may have led there.
bool could_open(const UserRights& reader, const OpenInput& input) {
  const std::string place = real_path_of(input.descriptor.get());
  return !place.empty() && has_right(reader, input.status, read_acl(place.c_str()), S_IROTH) &&
         can_reach(reader, place);
}

Error not_his(const std::string& path, std::uint32_t owner_of_job, std::string_view why) {
  return missing(
      path, fmt::format("user {}, who owns the job file, cannot read it{}", owner_of_job, why));
}

/// As the owner of the job, where we may be him: then the kernel decides.
Result<OpenInput> open_input(const std::string& path, std::uint32_t owner_of_job) {
  const bool is_ours = owner_of_job == ::geteuid();
  const UserRights reader =
      is_ours ? UserRights{.user = owner_of_job, .groups = {}} : rights_of_user(owner_of_job);
  OpenInput input;
  // A FIFO without a writer must not hold us.
  const auto open = [&] {
    return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  };
  const UserRights us{.user = ::geteuid(), .groups = {}};
  const int error = as_user(may_be_others() ? reader : us, open, &input.descriptor);
  if (error == EACCES && !is_ours) return not_his(path, owner_of_job, ": Permission denied");
  if (error != 0) return missing(path, std::strerror(error));
  if (::fstat(input.descriptor.get(), &input.status) != 0)
    return missing(path, std::strerror(errno));
  if (!S_ISREG(input.status.st_mode)) return missing(path, "it is not a regular file");
  if (!is_ours && !may_be_others() && !could_open(reader, input))
    return not_his(path, owner_of_job, "");
  return input;
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

Result<void> copy_by_hand(int from, int to) {
  errno = copy_all(from, to);
  return errno == 0 ? Result<void>{} : errno_error("copying");
}

/// The bytes from `at` to `end`, in both files at the same place.
Result<void> copy_range(int from, int to, off_t at, off_t end) {
  while (at < end) {
    off_t there = at;
    const auto left = static_cast<std::size_t>(end - at);
    const ssize_t done = ::copy_file_range(from, &at, to, &there, std::min(left, kMostAtOnce), 0);
    if (done > 0 || (done < 0 && errno == EINTR)) continue;
    break;  // some file systems cannot, and some answer 0 for a file that is not empty
  }
  std::vector<char> buffer(at < end ? kPiece : 0);
  while (at < end) {
    const auto left = static_cast<std::size_t>(end - at);
    const ssize_t got = ::pread(from, buffer.data(), std::min(left, buffer.size()), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("reading");
    if (got == 0) return {};  // it was cut off meanwhile; who copies looks again
    if (::lseek(to, at, SEEK_SET) < 0) return errno_error("writing");
    if (auto written = write_content(to, {buffer.data(), static_cast<std::size_t>(got)}); !written)
      return written;
    at += got;
  }
  return {};
}

}  // namespace

Result<Workspace> Workspace::open(const std::string& path, const std::string& trust_group) {
  std::error_code failed;
  const bool is_new = std::filesystem::create_directories(path, failed);
  if (failed) {
    return Error{Error::Kind::Rejected,
                 fmt::format("cannot make the workspace {}: {}", path, failed.message())};
  }
  if (is_new) ::chmod(path.c_str(), 0700);
  // Scripts of many users' jobs lie there: what a group may write is refused, not only said.
  const auto found = distrust(path, Wanted::Folder, trust_group);
  const auto real = std::filesystem::canonical(path, failed);
  if (found && (found->is_refusal || found->path == real)) {
    return Error{Error::Kind::Rejected, fmt::format("cannot use the workspace {}: {}{}", path,
                                                    found->text, found->group_hint)};
  }
  return Workspace(path);
}

std::string Workspace::name_folder(std::uint64_t inode, Time now,
                                   const std::set<std::string>& given) const {
  std::int64_t seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  while (true) {
    std::string folder = fmt::format("{}/{}-{}-{}", path_, short_host(), inode, seconds);
    struct stat status {};
    if (::lstat(folder.c_str(), &status) != 0 && !given.contains(folder)) return folder;
    ++seconds;  // an inode used again within the second
  }
}

bool Workspace::is_job_folder(const std::string& path) const {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos || path.substr(0, slash) != path_) return false;
  const std::string_view name = std::string_view(path).substr(slash + 1);
  const auto last = name.rfind('-');
  if (last == std::string_view::npos || last == 0) return false;
  const auto middle = name.rfind('-', last - 1);
  return middle != std::string_view::npos && middle > 0 && name.front() != '.' &&
         is_digits(name.substr(last + 1)) && is_digits(name.substr(middle + 1, last - middle - 1));
}

Result<void> Workspace::make(const std::string& folder) const {
  remove(folder);
  for (const std::string& path : {folder, folder + "/input", folder + "/output"}) {
    if (::mkdir(path.c_str(), 0700) != 0) return errno_error("cannot make " + path);
  }
  return {};
}

void Workspace::remove(const std::string& folder) const {
  if (!is_job_folder(folder)) return;
  std::error_code ignored;  // what a tool made unremovable stays; nothing depends on it
  std::filesystem::remove_all(folder, ignored);
}

Result<void> Workspace::note_taken(const std::string& folder, const Taken& taken) const {
  const std::string path = folder + kTakenEnding;
  forget_taken(folder);
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return errno_error("cannot write " + path);
  const std::string text = fmt::format("{}\n{}{}", taken.name.size(), taken.name, taken.document);
  if (auto written = write_content(file.get(), text); !written) return written;
  if (::fsync(file.get()) != 0) return errno_error("cannot write " + path);
  return {};
}

std::optional<Workspace::Taken> Workspace::taken(const std::string& folder) const {
  if (!is_job_folder(folder)) return std::nullopt;
  std::string text;
  try {
    text = read_text(folder + kTakenEnding, kLargestTaken);
  } catch (const DocumentError&) {
    return std::nullopt;
  }
  const auto line = text.find('\n');
  std::size_t size = 0;
  const auto read = std::from_chars(text.data(), text.data() + std::min(line, text.size()), size);
  if (line == std::string::npos || read.ec != std::errc{} || text.size() - line - 1 < size)
    return std::nullopt;
  return Taken{.name = text.substr(line + 1, size), .document = text.substr(line + 1 + size)};
}

void Workspace::forget_taken(const std::string& folder) const {
  if (is_job_folder(folder)) ::unlink((folder + kTakenEnding).c_str());
}

Result<void> write_script(const std::string& folder, const std::string& name,
                          std::string_view text) {
  const std::string path = folder + "/" + name;
  errno = replace_file(AT_FDCWD, path, text, {.mode = 0750, .against_umask = true});
  if (errno != 0) return errno_error("cannot write " + path);
  return {};
}

Result<std::optional<std::string>> find_template(const std::vector<std::string>& folders,
                                                 const std::string& script,
                                                 const std::string& trust_group) {
  for (const std::string& folder : folders) {
    const std::string path = fmt::format("{}/{}.template", folder, script);
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) continue;
    if (const auto found = distrust(path, Wanted::File, trust_group); found && found->is_refusal) {
      return Error{Error::Kind::Rejected, fmt::format("cannot use the template {}: {}{}", path,
                                                      found->text, found->group_hint)};
    }
    try {
      return std::optional(read_text(path, kLargestTemplate));
    } catch (const DocumentError& e) {
      return Error{Error::Kind::Rejected,
                   fmt::format("cannot use the template {}: {}", path, e.message)};
    }
  }
  return std::optional<std::string>{};
}

std::vector<std::string> command_of(const std::string& script_path, std::string_view text) {
  if (text.starts_with("#!")) return {script_path};
  return {"sh", script_path};
}

std::string staged_name(const std::string& path, std::set<std::string>& taken) {
  std::string name = path.substr(path.rfind('/') + 1);
  for (char& c : name) {
    const bool is_fine =
        static_cast<unsigned char>(c) < 0x80 &&
        (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-');
    if (!is_fine) c = '_';
  }
  if (name.empty()) name = "file";
  if (name.front() == '-' || name.front() == '.') name.front() = '_';
  auto [stem, ending] = parted(name);
  stem = stem.substr(0, kLongest - kLongestEnding - 8);
  name = stem + ending;
  for (int number = 2; !taken.insert(name).second; ++number) {
    name = fmt::format("{}_{}{}", stem, number, ending);
  }
  return name;
}

Result<InputFile> look_at_input(const std::string& path, std::uint32_t owner_of_job) {
  const auto input = open_input(path, owner_of_job);
  if (!input) return input.error();
  const auto modified = std::chrono::seconds{input->status.st_mtim.tv_sec} +
                        std::chrono::nanoseconds{input->status.st_mtim.tv_nsec};
  return InputFile{.path = path,
                   .size = static_cast<std::uint64_t>(input->status.st_size),
                   .modified = std::chrono::system_clock::time_point{
                       std::chrono::duration_cast<std::chrono::system_clock::duration>(modified)}};
}

Result<std::uint64_t> stage_input(const std::string& path, const std::string& target,
                                  std::uint32_t owner_of_job, std::uint64_t most) {
  for (int tries = 0; tries < 2; ++tries) {
    const auto input = open_input(path, owner_of_job);
    if (!input) return input.error();
    const auto size = static_cast<std::uint64_t>(input->status.st_size);
    if (size > most) {
      return Error{
          Error::Kind::Rejected,
          fmt::format("input_too_large: {} has {} bytes, and the drop box takes {} more of "
                      "this job; its input_limit says how much",
                      show_text(path, 300), size, most)};
    }
    const Fd copy(
        ::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!copy) return errno_error("cannot create " + target);
    const auto copied = copy_content(input->descriptor.get(), copy.get());
    if (!copied) {
      return Error{copied.error().kind,
                   fmt::format("cannot copy {} to {}: {}", show_text(path, 300), target,
                               copied.error().text)};
    }
    struct stat after {};
    const auto named = open_input(path, owner_of_job);
    if (::fstat(input->descriptor.get(), &after) == 0 && is_same(input->status, after) && named &&
        is_same(after, named->status)) {
      return size;
    }
    ::unlink(target.c_str());
  }
  return Error{
      Error::Kind::Rejected,
      fmt::format("input_changed: {} changed while it was copied, twice", show_text(path, 300))};
}

bool are_same_file(const std::string& a, const std::string& b, std::uint32_t owner_of_job) {
  const auto compare = [&] {
    struct stat first {};
    struct stat second {};
    if (::stat(a.c_str(), &first) != 0 || ::stat(b.c_str(), &second) != 0) return -1;
    if (first.st_dev == second.st_dev && first.st_ino == second.st_ino) return 0;
    errno = ENOENT;
    return -1;
  };
  const UserRights us{.user = ::geteuid(), .groups = {}};
  return a == b || as_user(may_be_others() ? rights_of_user(owner_of_job) : us, compare) == 0;
}

Error errno_error(const std::string& what) {
  const int code = errno;
  const bool may_pass = code == ENOSPC || code == EDQUOT || code == EIO || code == EMFILE ||
                        code == ENFILE || code == ENOMEM || code == ESTALE || code == EAGAIN;
  return Error{may_pass ? Error::Kind::Transient : Error::Kind::Rejected,
               fmt::format("{}: {}", what, std::strerror(code))};
}

Result<void> write_content(int to, std::string_view text) {
  errno = write_all(to, text);
  if (errno != 0) return errno_error("writing");
  return {};
}

Result<void> copy_content(int from, int to) {
  if (::ioctl(to, FICLONE, from) == 0) return {};
  struct stat status {};
  if (::fstat(from, &status) != 0) return errno_error("reading");
  for (off_t at = 0; at < status.st_size;) {
    off_t data = ::lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // a hole up to its end
    off_t hole = data < 0 ? -1 : ::lseek(from, data, SEEK_HOLE);
    if (hole < 0) {  // the file system tells none
      data = at;
      hole = status.st_size;
    }
    if (auto copied = copy_range(from, to, data, hole); !copied) return copied;
    at = hole;
  }
  if (::ftruncate(to, status.st_size) != 0) return errno_error("writing");
  // What came meanwhile, and files that are longer than they say.
  if (::lseek(from, status.st_size, SEEK_SET) < 0 || ::lseek(to, status.st_size, SEEK_SET) < 0)
    return errno_error("reading");
  return copy_by_hand(from, to);
}

bool rename_to_nothing(int directory, const std::string& from, const std::string& to) {
  if (::renameat2(directory, from.c_str(), directory, to.c_str(), RENAME_NOREPLACE) == 0)
    return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  if (::linkat(directory, from.c_str(), directory, to.c_str(), 0) == 0)
    return ::unlinkat(directory, from.c_str(), 0) == 0;
  if (errno == EEXIST) return false;
  struct stat status {};
  if (::fstatat(directory, to.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    errno = EEXIST;
    return false;
  }
  return ::renameat(directory, from.c_str(), directory, to.c_str()) == 0;
}

}  // namespace hpcbatch
