#include "staging/whole_file.hpp"

#include "wire/key.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace hpcbatch {
namespace {

namespace fs = std::filesystem;

StageError cannot(const std::string& path, int error) {
  const bool may_pass = error == ENOSPC || error == EDQUOT || error == EIO || error == ESTALE ||
                        error == ETIMEDOUT || error == EMFILE || error == ENFILE || error == ENOMEM;
  return {may_pass, "stage_out_failed",
          fmt::format("cannot write {} on this machine: {}", path, std::strerror(error))};
}

/// Closed and removed unless it is kept.
class Aside {
 public:
  explicit Aside(std::string path)
      : path_(std::move(path)),
        fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) {}
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  ~Aside() {
    if (fd_ < 0) return;
    ::close(fd_);
    if (!is_kept_) ::unlink(path_.c_str());
  }

  bool write(std::string_view bytes) const {
    if (fd_ < 0) return false;
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t count = ::write(fd_, bytes.data() + done, bytes.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return false;
      done += static_cast<std::size_t>(count);
    }
    return true;
  }
  bool publish(const std::string& path, std::uint32_t mode) {
    is_kept_ =
        ::fchmod(fd_, mode) == 0 && ::fsync(fd_) == 0 && ::rename(path_.c_str(), path.c_str()) == 0;
    return is_kept_;
  }

 private:
  std::string path_;
  int fd_;
  bool is_kept_{false};
};

}  // namespace

std::optional<StageError> make_folder_of(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) return cannot(path, error.value());
  return std::nullopt;
}

std::optional<StageError> write_whole_file(const std::string& path, std::string_view bytes,
                                           std::uint32_t mode) {
  if (auto error = make_folder_of(path)) return error;
  const fs::path folder = fs::path(path).parent_path();
  Aside aside((folder / fmt::format(".hpcbatch-{:016x}", wire::random_number())).string());
  if (!aside.write(bytes) || !aside.publish(path, mode)) return cannot(path, errno);
  return std::nullopt;
}

}  // namespace hpcbatch
