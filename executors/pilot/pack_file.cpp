#include "pack_file.hpp"

#include "log_line.hpp"

#include <fcntl.h>
#include <cerrno>
#include <cstring>

namespace hpcbatch::pilot {
namespace {

constexpr std::size_t kGather = std::size_t{1} << 20;
constexpr std::size_t kKeepRoom = std::size_t{128} << 10;

}  // namespace

PackFile::PackFile(std::string workspace, std::string name)
    : workspace_(std::move(workspace)), name_(std::move(name)) {}

bool PackFile::open() {
  if (fd_) return true;
  const std::string path = workspace_ + "/" + name_;
  fd_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd_)
    log_line("cannot make " + path + ": " + std::strerror(errno) + "; output of tasks is lost");
  return static_cast<bool>(fd_);
}

std::uint64_t PackFile::append(const wire::LogRecord& record, std::string_view bytes) {
  if (broken_ || !open()) {
    broken_ = true;
    return 0;
  }
  const std::uint64_t place = written_ + gathered_.size();
  wire::append_log_record(gathered_, record, bytes);
  if (gathered_.size() >= kGather) flush();
  return broken_ ? 0 : place + 1;
}

void PackFile::flush() {
  std::size_t done = 0;
  while (done < gathered_.size()) {
    const ssize_t count = ::pwrite(fd_.get(), gathered_.data() + done, gathered_.size() - done,
                                   static_cast<off_t>(written_ + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      log_line("cannot write " + workspace_ + "/" + name_ + ": " + std::strerror(errno) +
               "; output of tasks from here on is lost");
      broken_ = true;
      break;
    }
    done += static_cast<std::size_t>(count);
  }
  written_ += done;
  gathered_.clear();
  if (gathered_.capacity() > kKeepRoom) gathered_.shrink_to_fit();
}

std::string PackFile::read(std::uint64_t place, std::size_t length) {
  if (!fd_) return {};
  if (place + length > written_) flush();
  std::string bytes(length, '\0');
  std::size_t got = 0;
  while (got < length) {
    const ssize_t count =
        ::pread(fd_.get(), bytes.data() + got, length - got, static_cast<off_t>(place + got));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    got += static_cast<std::size_t>(count);
  }
  bytes.resize(got);
  return bytes;
}

}  // namespace hpcbatch::pilot
