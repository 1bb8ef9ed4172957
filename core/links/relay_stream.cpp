#include "links/relay_stream.hpp"

#include <fmt/format.h>
#include <boost/asio/local/connect_pair.hpp>

#include <algorithm>
#include <utility>

#include <fcntl.h>

namespace hpcbatch {
namespace {

constexpr std::size_t kTunnelPiece = std::size_t{64} << 10;

}  // namespace

Tunnel::Tunnel(asio::io_context& loop, Callbacks callbacks)
    : callbacks_(std::move(callbacks)), near_(loop), far_(loop), room_(kTunnelPiece, '\0') {}

std::shared_ptr<Tunnel> Tunnel::make(asio::io_context& loop, Callbacks callbacks) {
  std::shared_ptr<Tunnel> made(new Tunnel(loop, std::move(callbacks)));
  boost::system::error_code error;
  asio::local::connect_pair(made->near_, made->far_, error);
  return error ? nullptr : made;
}

asio::generic::stream_protocol::socket Tunnel::take_far_end() {
  return {std::move(far_)};
}

void Tunnel::may_say(std::size_t bytes) {
  allowed_ += bytes;
  if (!is_reading_) read();
}

void Tunnel::read() {
  if (allowed_ == 0 || !near_.is_open() || is_closing_) return;
  is_reading_ = true;
  near_.async_read_some(
      asio::buffer(room_.data(), std::min(room_.size(), allowed_)),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t bytes) {
        self->is_reading_ = false;
        if (!self->near_.is_open() || self->is_closing_) return;
        if (error) return self->engine_closed();
        self->allowed_ -= bytes;
        self->callbacks_.said(self->room_.substr(0, bytes));
        self->read();
      });
}

void Tunnel::engine_closed() {
  boost::system::error_code ignored;
  near_.close(ignored);
  // What is called may let go of this object's last owner.
  const auto closed = std::exchange(callbacks_, {}).closed;
  if (closed) closed();
}

void Tunnel::hear(std::string_view bytes) {
  waiting_ += bytes;
  if (writing_.empty()) write();
}

void Tunnel::write() {
  if (!near_.is_open()) return;
  if (waiting_.empty()) {
    boost::system::error_code ignored;
    if (is_closing_) near_.close(ignored);
    return;
  }
  writing_ = std::exchange(waiting_, {});
  asio::async_write(
      near_, asio::buffer(writing_),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
        const std::size_t bytes = std::exchange(self->writing_, {}).size();
        if (!self->near_.is_open()) return;
        if (error) {
          if (!self->is_closing_) self->engine_closed();
          return;
        }
        if (!self->is_closing_) self->callbacks_.taken(bytes);
        self->write();
      });
}

void Tunnel::close() {
  is_closing_ = true;
  callbacks_ = {};
  if (writing_.empty()) write();
}

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
