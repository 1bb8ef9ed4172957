#include "pilot/site/relay.hpp"

#include "pilot/base/clock.hpp"
#include "pilot/base/log_line.hpp"
#include "pilot/base/socket_address.hpp"
#include "wire/node_addresses.hpp"
#include "wire/pilot_file.hpp"
#include "wire/relay.hpp"
#include "wire/whole_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

std::map<std::string, std::uint16_t> ports_before(const std::string& file) {
  std::map<std::string, std::uint16_t> ports;
  const auto text = wire::read_file(file, wire::Readers::OwnerOnly);
  if (!text) return ports;
  const auto addresses = wire::parse_relay_file(*text, file);
  if (!addresses) return ports;
  for (const wire::Address& address : *addresses) ports[address.place] = address.port;
  return ports;
}

}  // namespace

RelayListener::RelayListener(std::string file, std::vector<Fd> listeners, std::string text)
    : file_(std::move(file)), listeners_(std::move(listeners)), text_(std::move(text)) {}

Result<RelayListener> RelayListener::open(const std::string& workspace,
                                          const std::string& address) {
  const std::string file = wire::relay_file(workspace);
  const auto before = ports_before(file);
  const std::vector<std::string> wanted =
      address.empty() ? wire::addresses_for_others(wire::own_addresses()) : std::vector{address};
  if (wanted.empty())
    return Error{
        Error::Kind::Rejected,
        "this node has no address that others reach; name one as the site's 'relay_interface'"};
  std::vector<Fd> listeners;
  std::string text;
  std::optional<Error> refused;
  for (const std::string& one : wanted) {
    const auto port = before.find(one);
    auto listener = listen_on(one, port == before.end() ? std::uint16_t{0} : port->second);
    if (!listener) {
      refused =
          Error{listener.error().kind,
                listener.error().text +
                    "; name another address of the login node as the site's 'relay_interface'"};
      continue;
    }
    listeners.push_back(std::move(listener->first));
    text +=
        "address " + to_text(wire::Address{wire::Address::Kind::Tcp, one, listener->second}) + "\n";
  }
  if (listeners.empty()) return *refused;
  if (auto written = wire::replace_file(file, text, wire::Readers::OwnerOnly); !written)
    return written.error();
  return RelayListener(file, std::move(listeners), std::move(text));
}

void RelayListener::keep_file() const {
  const auto now = wire::read_file(file_, wire::Readers::OwnerOnly);
  if (!now || *now != text_) (void)wire::replace_file(file_, text_, wire::Readers::OwnerOnly);
}

RelayListener::~RelayListener() {
  if (listeners_.empty()) return;
  const auto now = wire::read_file(file_, wire::Readers::OwnerOnly);
  if (now && *now == text_) ::unlink(file_.c_str());
}

namespace {

using Kind = wire::RelayFrame::Kind;

// Descriptors that are not for pilots.
constexpr rlim_t kOwnDescriptors = 64;

/// Whoever connects without being a pilot is refused by the engine; there are only so many at a time.
std::size_t most_connections() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur > 2 * kOwnDescriptors ? limit.rlim_cur - kOwnDescriptors : kOwnDescriptors;
}

void no_blocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace

Relay::Relay(RelayListener listener, Fd from_engine, Fd to_engine)
    : listener_(std::move(listener)),
      from_engine_(std::move(from_engine)),
      to_engine_(std::move(to_engine)),
      most_connections_(most_connections()),
      last_heard_(clock_now()),
      last_said_(clock_now()) {
  no_blocking(from_engine_.get());
  no_blocking(to_engine_.get());
  loop_.watch(from_engine_.get(), EPOLLIN, [this](std::uint32_t) { hear_engine(); });
  for (const Fd& open : listener_.listeners()) {
    loop_.watch(open.get(), EPOLLIN, [this, at = open.get()](std::uint32_t) {
      while (true) {
        Fd socket(::accept4(at, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket) return;
        take_pilot(std::move(socket));
      }
    });
  }
  say({.kind = Kind::Listening, .bytes = listener_.text()});
}

Relay::~Relay() = default;

void Relay::cannot_begin(int to_engine, const std::string& why) {
  std::string text;
  wire::append(text, {.kind = Kind::Ended, .bytes = why});
  if (::write(to_engine, text.data(), text.size()) < 0) log_line("nobody hears that");
}

void Relay::run() {
  while (!ended_) {
    loop_.wait(std::min(last_said_ + wire::kRelayAlive, last_heard_ + wire::kRelaySilence));
    const Time now = clock_now();
    if (now >= last_heard_ + wire::kRelaySilence) {
      return end("nothing heard of the engine for " + std::to_string(wire::kRelaySilence.count()) +
                 " s");
    }
    if (now < last_said_ + wire::kRelayAlive) continue;
    // One that nobody hears must not say that it is there.
    if (now < last_heard_ + 2 * wire::kRelayAlive) listener_.keep_file();
    say({.kind = Kind::Alive});
  }
}

// --- the engine --------------------------------------------------------------------------------

void Relay::hear_engine() {
  static std::array<char, std::size_t{256} * 1024> buffer;
  const ssize_t got = ::read(from_engine_.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    ended_ = true;
    return;
  }
  last_heard_ = clock_now();
  auto frames = frames_.receive({buffer.data(), static_cast<std::size_t>(got)});
  if (!frames) {
    return end(frames.error().text);
  }
  for (wire::RelayFrame& frame : *frames) heard(frame);
}

void Relay::heard(wire::RelayFrame& frame) {
  const auto at = connections_.find(frame.connection);
  if (at == connections_.end()) return;  // it has gone, and what was under way to it
  switch (frame.kind) {
    case Kind::Data:
      at->second.to_pilot += frame.bytes;
      write_to_pilot(frame.connection);
      break;
    case Kind::Taken:
      at->second.window += frame.taken;
      watch(frame.connection);
      break;
    case Kind::Closed:
      at->second.is_closing = true;
      write_to_pilot(frame.connection);
      break;
    case Kind::Listening:
    case Kind::Opened:
    case Kind::Alive:
    case Kind::Ended:
      break;
  }
}

void Relay::end(const std::string& why) {
  log_line(why);
  say({.kind = Kind::Ended, .bytes = why});
  ended_ = true;
}

void Relay::say(const wire::RelayFrame& frame) {
  append(unsent_, frame);
  write_to_engine();
}

void Relay::write_to_engine() {
  std::size_t done = 0;
  while (done < unsent_.size()) {
    const ssize_t count = ::write(to_engine_.get(), unsent_.data() + done, unsent_.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN) ended_ = true;
    if (count < 0) break;
    done += static_cast<std::size_t>(count);
  }
  unsent_.erase(0, done);
  last_said_ = clock_now();
  if (const bool waits = !unsent_.empty() && !ended_; waits != waits_to_write_) {
    waits_to_write_ = waits;
    if (waits) {
      loop_.watch(to_engine_.get(), EPOLLOUT, [this](std::uint32_t) { write_to_engine(); });
    } else {
      loop_.forget(to_engine_.get());
    }
  }
  // Pilots are not heard while the engine takes nothing.
  if (const bool is_behind = engine_is_behind(); is_behind != was_behind_) {
    was_behind_ = is_behind;
    for (const auto& [number, unused] : connections_) watch(number);
  }
}

// --- pilots ------------------------------------------------------------------------------------

void Relay::take_pilot(Fd socket) {
  if (connections_.size() >= most_connections_) return;
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const std::uint32_t number = ++last_number_;
  const int fd = socket.get();
  connections_[number].socket = std::move(socket);
  loop_.watch(fd, EPOLLIN, [this, number](std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) write_to_pilot(number);
    if ((events & ~std::uint32_t{EPOLLOUT}) != 0) hear_pilot(number, events);
  });
  say({.kind = Kind::Opened, .connection = number});
}

void Relay::watch(std::uint32_t number) {
  Connection& connection = connections_.at(number);
  const bool may_hear = connection.window > 0 && !engine_is_behind();
  loop_.change(connection.socket.get(),
               (may_hear ? std::uint32_t{EPOLLIN} : 0U) |
                   (connection.to_pilot.empty() ? 0U : std::uint32_t{EPOLLOUT}));
}

void Relay::hear_pilot(std::uint32_t number, std::uint32_t events) {
  const auto at = connections_.find(number);
  if (at == connections_.end()) return;
  Connection& connection = at->second;
  if (connection.window == 0 || engine_is_behind()) {
    // Nobody asked for what it says: it is told only that it is gone.
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) drop(number, false);
    return;
  }
  static std::array<char, wire::kLargestRelayFrame> room;
  const ssize_t got =
      ::recv(connection.socket.get(), room.data(), std::min(room.size(), connection.window), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    drop(number, false);
    return;
  }
  connection.window -= static_cast<std::size_t>(got);
  say({.kind = Kind::Data,
       .connection = number,
       .bytes = std::string(room.data(), static_cast<std::size_t>(got))});
  watch(number);
}

void Relay::write_to_pilot(std::uint32_t number) {
  const auto at = connections_.find(number);
  if (at == connections_.end()) return;
  Connection& connection = at->second;
  std::size_t done = 0;
  while (done < connection.to_pilot.size()) {
    const ssize_t count = ::send(connection.socket.get(), connection.to_pilot.data() + done,
                                 connection.to_pilot.size() - done, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;  // a broken connection is noticed when it is read
    done += static_cast<std::size_t>(count);
  }
  connection.to_pilot.erase(0, done);
  if (connection.is_closing && connection.to_pilot.empty()) return drop(number, true);
  watch(number);
  if (done > 0)
    say({.kind = Kind::Taken, .connection = number, .taken = static_cast<std::uint32_t>(done)});
}

void Relay::drop(std::uint32_t number, bool engine_knows) {
  const auto at = connections_.find(number);
  if (at == connections_.end()) return;
  loop_.forget(at->second.socket.get());
  connections_.erase(at);
  if (!engine_knows) say({.kind = Kind::Closed, .connection = number});
}

}  // namespace hpcbatch::pilot
