#include "dropbox/folder_events.hpp"

#include "model/check.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace hpcbatch {

FolderEvents::FolderEvents()
    : inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      bell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  HPCBATCH_CHECK(bell_);
}

bool FolderEvents::watch(const std::string& directory) {
  if (!inotify_) return false;
  if (watch_ >= 0) ::inotify_rm_watch(inotify_.get(), watch_);
  watch_ = ::inotify_add_watch(inotify_.get(), directory.c_str(),
                               IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE |
                                   IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
  return watch_ >= 0;
}

void FolderEvents::ring() {
  const std::uint64_t one = 1;
  // The counter cannot be full: nobody rings 2^64 times between two waits.
  [[maybe_unused]] const ssize_t written = ::write(bell_.get(), &one, sizeof one);
}

FolderEvents::Changes FolderEvents::wait(Duration at_most) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(at_most).count();
  std::array<pollfd, 2> sources{pollfd{bell_.get(), POLLIN, 0}, pollfd{inotify_.get(), POLLIN, 0}};
  ::poll(sources.data(), sources.size(),
         static_cast<int>(std::clamp<std::int64_t>(ms, 0, 3'600'000)));
  std::uint64_t rung = 0;
  [[maybe_unused]] const ssize_t cleared = ::read(bell_.get(), &rung, sizeof rung);

  Changes result;
  if (!inotify_) return result;
  alignas(inotify_event) std::array<char, std::size_t{64} * 1024> buffer{};
  while (true) {
    const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got <= 0) return result;
    for (const char* at = buffer.data(); at < buffer.data() + got;) {
      inotify_event event{};
      std::memcpy(&event, at, sizeof event);
      const char* const name = at + sizeof event;
      at = name + event.len;
      // The overflow is of no directory; other events may be of one that is no longer watched.
      if (event.wd != watch_ && !(event.mask & IN_Q_OVERFLOW)) continue;
      if (event.mask & (IN_Q_OVERFLOW | IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) {
        result.look_at_all = true;
      } else if (event.len > 0) {
        result.changes.push_back({name, (event.mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) != 0});
      }
    }
  }
}

}  // namespace hpcbatch
