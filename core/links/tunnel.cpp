#include "links/tunnel.hpp"

#include <boost/asio/local/connect_pair.hpp>

#include <algorithm>
#include <utility>

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

}  // namespace hpcbatch
