#include "pilot/tasks/pack_file.hpp"

#include "pilot/base/log_line.hpp"

#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kGather = std::size_t{1} << 20;
constexpr std::size_t kKeepCapacity = std::size_t{128} << 10;
constexpr auto kRetry = 1s;

}  // namespace

PackFile::PackFile(std::string workspace, std::string name, std::chrono::milliseconds patience)
    : workspace_(std::move(workspace)), name_(std::move(name)), patience_(patience) {}

bool PackFile::open() {
  if (fd_) return true;
  const std::string path = workspace_ + "/" + name_;
  fd_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return static_cast<bool>(fd_);
}

std::uint64_t PackFile::append(const wire::LogRecord& record, std::string_view bytes) {
  if (lost_) return 0;
  const std::uint64_t place = written_ + gathered_.size();
  wire::append_log_record(gathered_, record, bytes);
  if (gathered_.size() >= kGather) flush();
  return lost_ ? 0 : place + 1;
}

void PackFile::flush() {
  if (gathered_.empty()) return;
  if (retry_at_ && std::chrono::steady_clock::now() < *retry_at_) return;
  if (!write_gathered()) {
    failed(errno);
    return;
  }
  if (failing_since_) log_line("can write " + workspace_ + "/" + name_ + " again");
  failing_since_.reset();
  retry_at_.reset();
  trouble_.clear();
  wake();
}

void PackFile::wake() {
  for (const auto& then : std::exchange(waiting_, {})) then();
}

/// A part that was written is written again with the rest: records count as written when all are.
bool PackFile::write_gathered() {
  if (!open()) return false;
  for (std::size_t done = 0; done < gathered_.size();) {
    const ssize_t count = ::pwrite(fd_.get(), gathered_.data() + done, gathered_.size() - done,
                                   static_cast<off_t>(written_ + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    done += static_cast<std::size_t>(count);
  }
  written_ += gathered_.size();
  gathered_.clear();
  if (gathered_.capacity() > kKeepCapacity) gathered_.shrink_to_fit();
  return true;
}

void PackFile::failed(int error) {
  const Time now = std::chrono::steady_clock::now();
  if (!failing_since_) {
    failing_since_ = now;
    log_line("cannot write " + workspace_ + "/" + name_ + ": " + std::strerror(error) +
             "; output of tasks is kept in memory for a while");
  }
  trouble_ = "cannot write " + workspace_ + "/" + name_ + ": " + std::strerror(error);
  retry_at_ = now + kRetry;
  if (now >= *failing_since_ + patience_) lose();
}

void PackFile::lose() {
  log_line("gives " + workspace_ + "/" + name_ + " up: output of tasks is lost");
  lost_ = true;
  gathered_ = std::string();
  retry_at_.reset();
  trouble_.clear();
  wake();
}

void PackFile::finish() {
  retry_at_.reset();
  flush();
  if (!gathered_.empty()) lose();
  if (fd_ && ::fsync(fd_.get()) != 0) {
    log_line("cannot sync " + workspace_ + "/" + name_ + ": " + std::strerror(errno));
  }
}

std::string PackFile::read(std::uint64_t place, std::size_t length) {
  if (place + length > written_) flush();
  std::string bytes(
      place < written_ ? std::min<std::uint64_t>(length, written_ - place) : std::uint64_t{0},
      '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t count =
        ::pread(fd_.get(), bytes.data() + got, bytes.size() - got, static_cast<off_t>(place + got));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    got += static_cast<std::size_t>(count);
  }
  const bool whole = got == bytes.size();
  bytes.resize(got);
  const std::uint64_t waiting = place + got - std::min(place + got, written_);
  if (whole && got < length && waiting < gathered_.size()) {
    bytes += gathered_.substr(waiting, length - got);
  }
  return bytes;
}

}  // namespace hpcbatch::pilot
