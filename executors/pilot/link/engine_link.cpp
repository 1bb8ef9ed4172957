#include "pilot/link/engine_link.hpp"

#include "pilot/base/clock.hpp"
#include "pilot/base/log_line.hpp"
#include "pilot/link/connect.hpp"
#include "wire/file.hpp"
#include "wire/relay.hpp"

#include <dirent.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstTryPause = 50ms;
constexpr Duration kLongestTryPause = 2s;
constexpr Duration kLongestTryPauseHere =
    500ms;  // for a socket of this machine, which costs nothing to try
constexpr Duration kAnswer = 5s;
constexpr Duration kHeartbeat = 10s;
constexpr Duration kSilence = 30s;
// By files: the engine looks when it looks, and a shared file system shows what is new when it
// does.
constexpr Duration kSlowAnswer = 120s;
constexpr Duration kSlowSilence = 300s;
constexpr Duration kBeforeSlow = 20s;
// A relay that has died is started again within that time.
constexpr Duration kBeforeSlowWithRelay = 100s;
constexpr Duration kSlowHeartbeat = 90s;
constexpr Duration kLastPieces = 10s;
constexpr Duration kCompany = 20ms;
constexpr auto kLastWords = 1000ms;
// A missing file is believed when it stays so: NFS may hide it for a moment, and the workspace may
// be mounted anew.
constexpr Duration kMissingFor = 10s;
constexpr std::size_t kLargeFrame = std::size_t{1} << 20;

/// Between half and one and a half: many pilots that lost their engine at once do not come back at
/// once.
Duration jittered(Duration pause) {
  const auto part = static_cast<Duration::rep>(wire::random_number() % 1000);
  return pause / 2 + pause * part / 1000;
}

/// NFS remembers for a minute that a file was not there, unless its folder is opened.
void look_anew(const std::string& folder) {
  if (DIR* directory = ::opendir(folder.c_str())) ::closedir(directory);
}

}  // namespace

EngineLink::EngineLink(Loop& loop, std::string path, wire::PilotFile file, std::uint32_t rank,
                       Callbacks callbacks, Time now)
    : loop_(loop),
      path_(std::move(path)),
      file_(std::move(file)),
      name_{file_.allocation, rank},
      callbacks_(std::move(callbacks)),
      try_at_(now),
      alone_since_(now) {}

EngineLink::~EngineLink() {
  if (socket_) loop_.forget(socket_.get());
}

// --- finding the engine ------------------------------------------------------------------------

void EngineLink::try_again(Time now) {
  if (tries_ > 0) {
    look_anew(path_.substr(0, path_.rfind('/')));
    if (auto file = wire::read_pilot_file(path_)) {
      missing_since_.reset();
      if (file->allocation == file_.allocation) file_ = std::move(*file);
    } else if (::access(path_.c_str(), F_OK) == 0 || errno != ENOENT) {
      missing_since_.reset();
    } else if (!missing_since_) {
      missing_since_ = now;
    } else if (now >= *missing_since_ + kMissingFor) {
      state_ = State::GivenUp;
      try_at_.reset();
      log_line("the pilot file " + path_ + " is gone: the engine wants no more of this pilot");
      callbacks_.given_up();
      return;
    }
  }
  ++tries_;
  ways_ = ways(now);
  way_ = 0;
  if (ways_.empty()) {
    failed("no relay of the site says where it listens", now);
  } else {
    try_address(now);
  }
}

std::vector<EngineLink::Way> EngineLink::ways(Time now) {
  using Kind = wire::Address::Kind;
  std::vector<Way> found;
  Duration before_slow = file_.addresses.size() > 1 ? kBeforeSlow : Duration{};
  for (const wire::Address& address : file_.addresses) {
    if (address.kind == Kind::Relay) {
      before_slow = kBeforeSlowWithRelay;
      look_anew(address.place.substr(0, address.place.rfind('/')));
      const auto text = wire::read_file(address.place, wire::Readers::OwnerOnly);
      if (!text) continue;
      const auto addresses = wire::parse_relay_file(*text, address.place);
      if (!addresses) continue;
      for (const wire::Address& one : *addresses)
        found.push_back({one, "relay " + to_text(one), false});
    } else {
      const bool is_slow = address.kind == Kind::Spool;
      // Where files were the way before they are tried at once, behind the others.
      if (is_slow && !came_by_files_ && now < alone_since_ + before_slow) continue;
      found.push_back({address, to_text(address), is_slow});
    }
  }
  return found;
}

void EngineLink::try_address(Time now) {
  try_at_.reset();
  const Way& way = ways_[way_];
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
  if (way_ + 1 < ways_.size()) {
    ++way_;
    try_address(now);
    return;
  }
  const bool here = !ways_.empty() && ways_[way_].address.kind == wire::Address::Kind::Unix;
  const Duration pause = kFirstTryPause * (1U << std::min(tries_ > 0 ? tries_ - 1 : 0, 10U));
  try_at_ = now + jittered(std::min(pause, here ? kLongestTryPauseHere : kLongestTryPause));
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
    failed(ways_[way_].name + ": " + std::strerror(error), clock_now());
    return;
  }
  state_ = State::Proving;
  link_ = wire::Link::connecting(name_, wire::pilot_key(file_.key, name_.rank));
  write();
}

// --- speaking ----------------------------------------------------------------------------------

void EngineLink::receive() {
  static std::array<char, 256 * 1024> room;
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
    tries_ = 1;
    last_failure_.clear();
    last_sent_ = now;
    outgoing_.Clear();
    any_outgoing_ = urgent_ = false;
    company_until_.reset();
    log_line("link up: " + ways_[way_].name);
    callbacks_.up(ways_[way_].name);
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
    alone_since_ = now;
    came_by_files_ = ways_[way_].is_slow;
    way_ = ways_.size() - 1;
  }
  failed(was_up ? why : ways_[way_].name + ": " + why, now);
  if (was_up) callbacks_.down();
}

void EngineLink::tick(Time now) {
  if (try_at_ && now >= *try_at_) try_again(now);
  if (deadline_ && now >= *deadline_) failed(ways_[way_].name + ": no answer in time", now);
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
  return ways_[way_].is_slow ? kSlowHeartbeat : kHeartbeat;
}

Duration EngineLink::silence() const {
  return ways_[way_].is_slow ? kSlowSilence : kSilence;
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
