#include "links/relay_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <fcntl.h>

namespace hpcbatch {
namespace {

using Kind = wire::RelayFrame::Kind;

constexpr std::size_t kStreamPiece = std::size_t{256} << 10;

int without_blocking(int descriptor) {
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  return descriptor;
}

}  // namespace

RelayStream::RelayStream(asio::io_context& loop, int descriptor, Callbacks callbacks)
    : loop_(loop),
      callbacks_(std::move(callbacks)),
      stream_(loop, without_blocking(descriptor)),
      timer_(loop),
      room_(kStreamPiece, '\0'),
      last_heard_(std::chrono::steady_clock::now()),
      last_said_(last_heard_) {}

void RelayStream::start() {
  read();
  watch();
}

void RelayStream::read() {
  stream_.async_read_some(
      asio::buffer(room_),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t bytes) {
        if (!self->stream_.is_open()) return;
        if (error) return self->end("the relay has ended");
        self->last_heard_ = std::chrono::steady_clock::now();
        auto frames = self->frames_.receive({self->room_.data(), bytes});
        if (!frames) return self->end(frames.error().text);
        for (wire::RelayFrame& frame : *frames) {
          self->heard(frame);
          if (!self->stream_.is_open()) return;
        }
        self->read();
      });
}

void RelayStream::heard(wire::RelayFrame& frame) {
  if (frame.kind == Kind::Listening) return callbacks_.listening(frame.bytes);
  if (frame.kind == Kind::Ended) return end("it ended: " + frame.bytes);
  if (frame.kind == Kind::Opened) return opened(frame.connection);
  const auto at = connections_.find(frame.connection);
  if (at == connections_.end())
    return;  // the engine has closed it, and what was under way comes to nothing
  if (frame.kind == Kind::Data) {
    at->second->hear(frame.bytes);
  } else if (frame.kind == Kind::Taken) {
    at->second->may_say(frame.taken);
  } else if (frame.kind == Kind::Closed) {
    at->second->close();
    connections_.erase(at);
  }
}

void RelayStream::opened(std::uint32_t number) {
  const std::weak_ptr<RelayStream> weak = weak_from_this();
  const auto say_it = [weak](const wire::RelayFrame& frame) {
    if (const auto self = weak.lock(); self && self->stream_.is_open()) self->say(frame);
  };
  auto tunnel = Tunnel::make(
      loop_,
      Tunnel::Callbacks{
          .said =
              [say_it, number](std::string bytes) {
                say_it({.kind = Kind::Data, .connection = number, .bytes = std::move(bytes)});
              },
          .taken =
              [say_it, number](std::size_t bytes) {
                say_it({.kind = Kind::Taken,
                        .connection = number,
                        .taken = static_cast<std::uint32_t>(bytes)});
              },
          .closed =
              [weak, say_it, number] {
                if (const auto self = weak.lock()) self->connections_.erase(number);
                say_it({.kind = Kind::Closed, .connection = number});
              }});
  if (!tunnel) return say({.kind = Kind::Closed, .connection = number});
  connections_[number] = tunnel;
  tunnel->may_say(wire::kRelayWindow);
  callbacks_.connected(tunnel->take_far_end());
}

void RelayStream::say(const wire::RelayFrame& frame) {
  append(waiting_, frame);
  last_said_ = std::chrono::steady_clock::now();
  if (writing_.empty()) write();
}

void RelayStream::write() {
  if (waiting_.empty() || !stream_.is_open()) return;
  writing_ = std::exchange(waiting_, {});
  asio::async_write(
      stream_, asio::buffer(writing_),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
        self->writing_.clear();
        if (!self->stream_.is_open()) return;
        if (error) return self->end("the relay takes nothing more");
        self->write();
      });
}

void RelayStream::watch() {
  timer_.expires_at(std::min(last_heard_ + wire::kRelaySilence, last_said_ + wire::kRelayAlive));
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || !self->stream_.is_open()) return;
    const auto now = std::chrono::steady_clock::now();
    if (now >= self->last_heard_ + wire::kRelaySilence)
      return self->end(
          fmt::format("nothing was heard of the relay for {} s", wire::kRelaySilence.count()));
    if (now >= self->last_said_ + wire::kRelayAlive) self->say({.kind = Kind::Alive});
    self->watch();
  });
}

void RelayStream::close() {
  boost::system::error_code ignored;
  stream_.close(ignored);
  timer_.cancel();
  for (const auto& [number, tunnel] : connections_) tunnel->close();
  connections_.clear();
  callbacks_ = {};
}

void RelayStream::end(const std::string& why) {
  const auto ended = callbacks_.ended;
  close();
  if (ended) ended(why);
}

}  // namespace hpcbatch
