#include "pilot/base/loop.hpp"

#include "pilot/base/log_line.hpp"

#include <sys/epoll.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace hpcbatch::pilot {
namespace {

void must(int result, const char* what) {
  if (result >= 0) return;
  log_line(std::string("cannot ") + what + ": " + std::strerror(errno));
  std::abort();
}

std::uint64_t mark(int fd, std::uint32_t generation) {
  return (std::uint64_t{generation} << 32) | static_cast<std::uint32_t>(fd);
}

}  // namespace

Loop::Loop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  must(epoll_.get(), "make an epoll descriptor");
}

void Loop::watch(int fd, std::uint32_t events, Ready ready) {
  const auto at = static_cast<std::size_t>(fd);
  if (watched_.size() <= at) watched_.resize(at + 1);
  Watched& watched = watched_[at];
  ++watched.generation;
  watched.ready = std::make_shared<Ready>(std::move(ready));
  epoll_event event{};
  event.events = events;
  event.data.u64 = mark(fd, watched.generation);
  must(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), "watch a descriptor");
}

void Loop::change(int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = mark(fd, watched_[static_cast<std::size_t>(fd)].generation);
  must(::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event), "watch a descriptor otherwise");
}

void Loop::forget(int fd) {
  Watched& watched = watched_[static_cast<std::size_t>(fd)];
  ++watched.generation;
  watched.ready.reset();
  must(::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr), "forget a descriptor");
}

Time Loop::wait(std::optional<Time> until) {
  int timeout = -1;
  if (until) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(*until - std::chrono::steady_clock::now())
            .count();
    timeout = left <= 0 ? 0 : static_cast<int>(std::min<decltype(left)>(left, INT_MAX));
  }
  std::array<epoll_event, 256> events;
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
  const Time woke = std::chrono::steady_clock::now();
  if (count < 0 && errno == EINTR) return woke;
  must(count, "wait for events");
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const auto fd = static_cast<std::size_t>(event.data.u64 & 0xFFFFFFFFU);
    const auto generation = static_cast<std::uint32_t>(event.data.u64 >> 32);
    const Watched& watched = watched_[fd];
    if (watched.generation != generation) continue;
    const std::shared_ptr<Ready> ready = watched.ready;
    (*ready)(event.events);
  }
  return woke;
}

}  // namespace hpcbatch::pilot
