#include "dropbox/stage_inputs.hpp"

#include "documents/text_check.hpp"
#include "dropbox/file_descriptor.hpp"
#include "dropbox/transfer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <vector>

namespace hpcbatch {
namespace {

struct OpenInput {
  FileDescriptor descriptor;
  struct stat status {};
};

Error missing(const std::string& path, std::string_view why) {
  return Error{Error::Kind::Rejected,
               fmt::format("input_missing: cannot use {}: {}", show_text(path, 300), why)};
}

/// A user as file permissions know it.
struct Reader {
  std::uint32_t user{0};
  std::vector<gid_t> groups;
};

Reader reader_of(std::uint32_t user) {
  Reader reader{.user = user, .groups = {}};
  struct passwd entry {};
  struct passwd* found = nullptr;
  std::vector<char> text(std::size_t{1} << 16);
  if (::getpwuid_r(user, &entry, text.data(), text.size(), &found) != 0 || !found) return reader;
  int count = 64;
  reader.groups.resize(static_cast<std::size_t>(count));
  while (::getgrouplist(entry.pw_name, entry.pw_gid, reader.groups.data(), &count) < 0)
    reader.groups.resize(static_cast<std::size_t>(count));
  reader.groups.resize(static_cast<std::size_t>(count));
  return reader;
}

/// `right` as others have it: S_IROTH or S_IXOTH.
bool has_right(const Reader& reader, const struct stat& status, mode_t right) {
  if (reader.user == 0) return true;
  if (status.st_uid == reader.user) return status.st_mode & (right << 6U);
  const bool in_group =
      std::find(reader.groups.begin(), reader.groups.end(), status.st_gid) != reader.groups.end();
  return status.st_mode & (in_group ? right << 3U : right);
}

/// Looks at the place of the open file itself, since a link of the reader's may have led there.
bool could_open(const Reader& reader, const OpenInput& input) {
  if (!has_right(reader, input.status, S_IROTH)) return false;
  std::array<char, PATH_MAX> real{};
  const std::string link = fmt::format("/proc/self/fd/{}", input.descriptor.get());
  const ssize_t length = ::readlink(link.c_str(), real.data(), real.size() - 1);
  if (length <= 0) return false;
  std::string place(real.data(), static_cast<std::size_t>(length));
  for (auto slash = place.rfind('/'); slash != std::string::npos; slash = place.rfind('/')) {
    place.resize(slash);
    struct stat folder {};
    if (::stat(place.empty() ? "/" : place.c_str(), &folder) != 0 ||
        !has_right(reader, folder, S_IXOTH)) {
      return false;
    }
  }
  return true;
}

Result<OpenInput> open_input(const std::string& path, std::uint32_t owner_of_job) {
  OpenInput input;
  // A FIFO without a writer must not hold us.
  input.descriptor =
      FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!input.descriptor) return missing(path, std::strerror(errno));
  if (::fstat(input.descriptor.get(), &input.status) != 0)
    return missing(path, std::strerror(errno));
  if (!S_ISREG(input.status.st_mode)) return missing(path, "it is not a regular file");
  if (owner_of_job != ::geteuid() && !could_open(reader_of(owner_of_job), input)) {
    return missing(path,
                   fmt::format("user {}, who owns the job file, cannot read it", owner_of_job));
  }
  return input;
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

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

Result<void> stage_input(const std::string& path, const std::string& target,
                         std::uint32_t owner_of_job) {
  for (int tries = 0; tries < 2; ++tries) {
    const auto input = open_input(path, owner_of_job);
    if (!input) return input.error();
    const FileDescriptor copy(
        ::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!copy) return errno_error("cannot create " + target);
    const auto copied = copy_content(input->descriptor.get(), copy.get());
    if (!copied) {
      return Error{copied.error().kind,
                   fmt::format("cannot copy {} to {}: {}", show_text(path, 300), target,
                               copied.error().text)};
    }
    struct stat after {};
    struct stat named {};
    if (::fstat(input->descriptor.get(), &after) == 0 && is_same(input->status, after) &&
        ::stat(path.c_str(), &named) == 0 && is_same(after, named)) {
      return {};
    }
    ::unlink(target.c_str());
  }
  return Error{
      Error::Kind::Rejected,
      fmt::format("input_changed: {} changed while it was copied, twice", show_text(path, 300))};
}

}  // namespace hpcbatch
