#include "dropbox/stage_inputs.hpp"

#include "documents/text_check.hpp"
#include "dropbox/transfer.hpp"
#include "dropbox/user_rights.hpp"
#include "posix/fd.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace hpcbatch {
namespace {

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

}  // namespace hpcbatch
