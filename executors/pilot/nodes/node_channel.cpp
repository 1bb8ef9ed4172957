#include "pilot/nodes/node_channel.hpp"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

/// Who has lost the other end ends what it runs for it: two of a task are never at work for long.
void notice_silence(int fd) {
  constexpr int kIdle = 10;
  constexpr int kPause = 5;
  constexpr int kTimes = 4;
  constexpr unsigned kMostUnanswered = 30'000;  // ms
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kIdle, sizeof kIdle);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kPause, sizeof kPause);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kTimes, sizeof kTimes);
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kMostUnanswered, sizeof kMostUnanswered);
}

}  // namespace

NodeChannel::NodeChannel(Fd socket, wire::Link link)
    : socket_(std::move(socket)), link_(std::move(link)) {
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  notice_silence(socket_.get());
}

void NodeChannel::send(const wire::NodePiece& piece) {
  link_.send(piece.SerializeAsString());
}

bool NodeChannel::flush() {
  pending_ += link_.take_output();
  while (!pending_.empty()) {
    const ssize_t sent = ::send(socket_.get(), pending_.data(), pending_.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    pending_.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

std::optional<std::vector<wire::NodePiece>> NodeChannel::receive() {
  std::vector<wire::NodePiece> pieces;
  std::string bytes(kMostData, '\0');
  const ssize_t got = ::read(socket_.get(), bytes.data(), bytes.size());
  if (got == 0) return std::nullopt;
  if (got < 0) return errno == EAGAIN || errno == EINTR ? std::optional(pieces) : std::nullopt;
  bytes.resize(static_cast<std::size_t>(got));
  const auto messages = link_.receive(bytes);
  if (!messages) return std::nullopt;
  for (const std::string& message : *messages) {
    wire::NodePiece piece;
    if (!piece.ParseFromString(message)) return std::nullopt;
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace hpcbatch::pilot
