#include "pilot/link/engine_link.hpp"

#include "pilot/base/clock.hpp"
#include "pilot/base/log_line.hpp"
#include "pilot/link/ways_to_engine.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

constexpr Duration kAnswer = 5s;
constexpr Duration kHeartbeat = 10s;
constexpr Duration kSilence = 30s;
// By files: the engine looks when it looks, and a shared file system shows what is new when it
// does.
constexpr Duration kSlowAnswer = 120s;
constexpr Duration kSlowSilence = 300s;
constexpr Duration kSlowHeartbeat = 90s;
constexpr Duration kLastPieces = 10s;
constexpr Duration kCompany = 20ms;
constexpr auto kLastWords = 1000ms;
constexpr std::size_t kLargeFrame = std::size_t{1} << 20;

/// Between half and one and a half: many pilots that lost their engine at once do not come back at
/// once.
Duration jittered(Duration pause) {
  const auto part = static_cast<Duration::rep>(wire::random_number() % 1000);
  return pause / 2 + pause * part / 1000;
}

}  // namespace

EngineLink::EngineLink(Loop& loop, std::string path, wire::PilotFile file, std::uint32_t rank,
                       Callbacks callbacks, Time now)
    : loop_(loop),
      name_{file.allocation, rank},
      ways_(std::move(path), std::move(file), now),
      callbacks_(std::move(callbacks)),
      try_at_(now) {}

EngineLink::~EngineLink() {
  if (socket_) loop_.forget(socket_.get());
}

// --- finding the engine ------------------------------------------------------------------------

void EngineLink::try_again(Time now) {
  ways_.look(now);
  if (ways_.is_given_up()) {
    state_ = State::GivenUp;
    try_at_.reset();
    log_line("the pilot file " + ways_.path() + " is gone: the engine wants no more of this pilot");
    callbacks_.given_up();
  } else if (ways_.any()) {
    try_address(now);
  } else {
    failed("no relay of the site says where it listens", now);
  }
}

void EngineLink::try_address(Time now) {
  try_at_.reset();
  const WaysToEngine::Way& way = ways_.current();
  if (way.is_slow) {
    carrier_.emplace(way.address.place, name_);
    socket_ = carrier_->take_socket();
    if (!socket_) return failed(way.name + ": no descriptors or threads are left", now);
  } else {
    auto socket = start_connecting(way.address);
    if (!socket) {
      failed(socket.error().text, now);
      return;
    }
    socket_ = std::move(*socket);
  }
  state_ = State::Connecting;
  deadline_ = now + (way.is_slow ? kSlowAnswer : kAnswer);
  wants_to_write_ = true;
  loop_.watch(socket_.get(), EPOLLIN | EPOLLOUT, [this](std::uint32_t events) { ready(events); });
}

void EngineLink::failed(const std::string& why, Time now) {
  if (why != last_failure_) log_line("no link to the engine: " + why);
  last_failure_ = why;
  hang_up();
  link_.reset();
  unsent_.clear();
  deadline_.reset();
  state_ = State::Down;
  carrier_.reset();
  if (ways_.try_next()) {
    try_address(now);
  } else {
    try_at_ = now + jittered(ways_.pause());
  }
}

void EngineLink::ready(std::uint32_t events) {
  if (state_ == State::Connecting) {
    connected();
  } else {
    if ((events & EPOLLOUT) != 0) write();
    if (socket_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) receive();
  }
}

void EngineLink::connected() {
  if (const int error = connection_error(socket_.get()); error != 0) {
    failed(ways_.current().name + ": " + std::strerror(error), clock_now());
    return;
  }
  state_ = State::Proving;
  link_ = wire::Link::connecting(name_, wire::pilot_key(ways_.key(), name_.rank));
  write();
}

// --- speaking ----------------------------------------------------------------------------------

void EngineLink::receive() {
  static std::array<char, std::size_t{256} * 1024> room;
  const ssize_t got = ::recv(socket_.get(), room.data(), room.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const Time now = clock_now();
  if (got <= 0) {
    drop(got == 0 ? "the engine closed it" : std::strerror(errno), now);
    return;
  }
  last_heard_ = now;
  const auto messages =
      link_->receive(std::string_view(room.data(), static_cast<std::size_t>(got)));
  if (!messages) {
    drop(messages.error().text, now);
    return;
  }
  if (state_ == State::Proving && link_->established()) {
    state_ = State::Up;
    deadline_.reset();
    ways_.found();
    last_failure_.clear();
    last_sent_ = now;
    outgoing_.Clear();
    any_outgoing_ = urgent_ = false;
    company_until_.reset();
    log_line("link up: " + ways_.current().name);
    callbacks_.up(ways_.current().name);
  }
  for (const std::string& text : *messages) {
    wire::ToPilot message;
    if (!message.ParseFromString(text)) {
      drop("the engine sent a message that cannot be read", now);
      return;
    }
    if (message.heartbeat() != 0 && message.heartbeat() != heartbeat_) {
      outgoing_.set_heartbeat(message.heartbeat());
      added(true, now);
    }
    callbacks_.message(message);
  }
  write();
}

void EngineLink::added(bool urgent, Time now) {
  any_outgoing_ = true;
  urgent_ = urgent_ || urgent;
  if (!company_until_) company_until_ = now + kCompany;
}

void EngineLink::send_gathered(Time now) {
  callbacks_.gather(outgoing_);
  const std::string text = outgoing_.SerializeAsString();
  link_->send(text);
  outgoing_.Clear();
  // What a burst has taken is given back.
  if (text.size() > kLargeFrame) outgoing_ = wire::ToEngine();
  any_outgoing_ = urgent_ = false;
  company_until_.reset();
  last_sent_ = now;
  write();
}

void EngineLink::write() {
  if (link_->has_output()) {
    if (unsent_.empty()) {
      unsent_ = link_->take_output();
    } else {
      unsent_ += link_->take_output();
    }
  }
  std::size_t done = 0;
  while (done < unsent_.size()) {
    const ssize_t count =
        ::send(socket_.get(), unsent_.data() + done, unsent_.size() - done, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    // A broken link is noticed when it is read.
    if (count < 0) break;
    done += static_cast<std::size_t>(count);
  }
  unsent_.erase(0, done);
  if (unsent_.empty() && unsent_.capacity() > kLargeFrame) unsent_.shrink_to_fit();
  const bool wants = !unsent_.empty();
  if (wants != wants_to_write_) loop_.change(socket_.get(), wants ? EPOLLIN | EPOLLOUT : EPOLLIN);
  wants_to_write_ = wants;
}

void EngineLink::drop(const std::string& why, Time now) {
  const bool was_up = state_ == State::Up;
  if (was_up) {
    log_line("link down: " + why);
    last_failure_ = why;
    ways_.lost(now);
  }
  failed(was_up ? why : ways_.current().name + ": " + why, now);
  if (was_up) callbacks_.down();
}

void EngineLink::tick(Time now) {
  if (try_at_ && now >= *try_at_) try_again(now);
  if (deadline_ && now >= *deadline_) failed(ways_.current().name + ": no answer in time", now);
  if (state_ != State::Up) return;
  if (now >= last_heard_ + silence()) {
    drop("nothing heard for " +
             std::to_string(std::chrono::duration_cast<std::chrono::seconds>(silence()).count()) +
             " s",
         now);
    return;
  }
  if (!any_outgoing_ && now >= last_sent_ + heartbeat_every()) {
    outgoing_.set_heartbeat(++heartbeat_);
    added(true, now);
  }
  if (any_outgoing_ && (urgent_ || now >= *company_until_)) send_gathered(now);
}

/// Not by closing alone: a child that was forked meanwhile has the socket too.
void EngineLink::hang_up() {
  if (!socket_) return;
  loop_.forget(socket_.get());
  ::shutdown(socket_.get(), SHUT_RDWR);
  socket_.reset();
}

Duration EngineLink::heartbeat_every() const {
  return ways_.current().is_slow ? kSlowHeartbeat : kHeartbeat;
}

Duration EngineLink::silence() const {
  return ways_.current().is_slow ? kSlowSilence : kSilence;
}

std::optional<Time> EngineLink::next() const {
  if (state_ == State::Up) {
    Time earliest = std::min(last_sent_ + heartbeat_every(), last_heard_ + silence());
    if (company_until_) earliest = std::min(earliest, *company_until_);
    return earliest;
  }
  return deadline_ ? deadline_ : try_at_;
}

void EngineLink::finish() {
  if (state_ != State::Up) return;
  if (any_outgoing_) send_gathered(clock_now());
  const Time until = clock_now() + kLastWords;
  while (!unsent_.empty() && clock_now() < until) {
    pollfd waiting{socket_.get(), POLLOUT, 0};
    if (::poll(&waiting, 1, 50) > 0 && (waiting.revents & (POLLERR | POLLHUP)) != 0) return;
    write();
  }
  if (!carrier_) return;
  hang_up();
  carrier_->wait_until_written(clock_now() + kLastPieces);
}

}  // namespace hpcbatch::pilot
