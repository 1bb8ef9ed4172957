#include "store/owner.hpp"

#include "model/owner.hpp"
#include "posix/files.hpp"
#include "posix/programs.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <optional>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpcbatch::store {
namespace {

// A killed engine holds its lock until the last of its threads is gone from the kernel.
constexpr int kLooksAtDying = 200;
constexpr std::chrono::milliseconds kBetweenLooks{10};

std::string lock_file(const std::string& directory) {
  return directory + "/engine.lock";
}

Owner ourselves(const EngineWays& ways) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return {host,
          boot_id(),
          ::getpid(),
          start_of_process(::getpid()),
          static_cast<long long>(std::time(nullptr)),
          ways.ends_when_idle,
          ways.config};
}

std::optional<Owner> read_owner(const RegularFile& file) {
  return parse_owner(read_regular(file, kLongestOwner).text);
}

bool lives(const Owner& owner, const Owner& us) {
  if (owner.host == us.host) return is_running(owner.process, owner.process_start, owner.boot_id);
  return us.heartbeat - owner.heartbeat < kHeartbeatAge;
}

bool write_words(int descriptor, const std::string& text) {
  return ::ftruncate(descriptor, 0) == 0 &&
         ::pwrite(descriptor, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

}  // namespace

std::variant<OwnerLock, NotOwner> OwnerLock::take(const std::string& directory, EngineWays ways) {
  return take(directory, std::move(ways), kLooksAtDying);
}

std::variant<OwnerLock, NotOwner> OwnerLock::take(const std::string& directory, EngineWays ways,
                                                  int looks) {
  const std::string file = lock_file(directory);
  const Owner us = ourselves(ways);
  RegularFile lock = open_regular(AT_FDCWD, file, O_RDWR | O_CREAT);
  if (!lock) {
    return NotOwner{NotOwner::Why::Failed,
                    fmt::format("cannot lock {}: {}", file, why_not_regular(lock.error))};
  }
  const int descriptor = lock.fd.get();
  const auto refused = [&](const std::optional<Owner>& owner) {
    using Why = NotOwner::Why;
    if (!owner)
      return NotOwner{Why::Here, fmt::format("another engine is just taking {}; try again", file)};
    if (owner->host == us.host)
      return NotOwner{Why::Here, fmt::format("an engine already runs here (process {}) with {}",
                                             owner->process, directory)};
    return NotOwner{
        Why::Elsewhere,
        fmt::format("the engine of {} runs on {} (process {}); use it there, or end it there first",
                    directory, owner->host, owner->process)};
  };
  // flock settles races between engines of one host; the file's words settle those between hosts.
  for (int look = 1; ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; ++look) {
    const auto owner = read_owner(lock);
    if (look == looks || !owner || lives(*owner, us)) return refused(owner);
    std::this_thread::sleep_for(kBetweenLooks);
  }
  if (const auto owner = read_owner(lock);
      owner && lives(*owner, us) && owner->process != us.process) {
    return refused(owner);
  }
  if (!write_words(descriptor, to_text(us))) {
    return NotOwner{NotOwner::Why::Failed,
                    fmt::format("cannot write {}: {}", file, std::strerror(errno))};
  }
  ::fsync(descriptor);
  return OwnerLock(directory, lock.fd.release(), std::move(ways));
}

OwnerLock::OwnerLock(OwnerLock&& other) noexcept
    : directory_(std::move(other.directory_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      ways_(std::move(other.ways_)) {}

OwnerLock::~OwnerLock() {
  if (descriptor_ < 0) return;
  // Emptied, not removed: a second engine may hold the same file open and would lock what has no
  // name.
  (void)!::ftruncate(descriptor_, 0);
  ::close(descriptor_);
}

void OwnerLock::renew(bool ends_when_idle) {
  ways_.ends_when_idle = ends_when_idle;
  (void)write_words(descriptor_, to_text(ourselves(ways_)));
}

bool OwnerLock::is_in_place() const {
  struct stat held {};
  struct stat found {};
  return ::fstat(descriptor_, &held) == 0 && ::stat(lock_file(directory_).c_str(), &found) == 0 &&
         held.st_dev == found.st_dev && held.st_ino == found.st_ino;
}

std::optional<NotOwner> OwnerLock::stand_again() {
  if (is_in_place()) return std::nullopt;
  auto again = take(directory_, ways_, 1);
  if (auto* refused = std::get_if<NotOwner>(&again)) return std::move(*refused);
  // The old one goes with `again`.
  std::swap(descriptor_, std::get<OwnerLock>(again).descriptor_);
  return std::nullopt;
}

}  // namespace hpcbatch::store
