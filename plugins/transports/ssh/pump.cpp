#include "pump.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/socket.h>

namespace hpcbatch {
namespace {

constexpr std::size_t kPumpedPiece = 64u << 10;
constexpr std::size_t kMostOnTheWay = 256u << 10;

}  // namespace

bool is_closed(ssh_channel channel) {
  return (ssh_channel_is_eof(channel) != 0 || ssh_channel_is_closed(channel) != 0) &&
         ssh_channel_poll(channel, 0) <= 0 && ssh_channel_poll(channel, 1) <= 0;
}

Pump::Pump(Session& session, int near, ssh_channel far, std::string first)
    : session_(session),
      near_(near),
      far_(far),
      to_near_(std::move(first)),
      buffer_(kPumpedPiece) {}

void Pump::run() {
  for (;;) {
    take_near();
    if (!give_far()) return;
    take_far();
    if (!give_near()) return;
    if (to_near_.empty() && is_closed(far_)) return;
    if (!session_.is_alive() || !wait()) return;
  }
}

void Pump::take_near() {
  while (!near_has_ended_ && to_far_.size() < kMostOnTheWay) {
    const ssize_t n = ::recv(near_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (n > 0) to_far_.append(buffer_.data(), static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) near_has_ended_ = true;
    if (n <= 0) return;
  }
}

bool Pump::give_far() {
  while (!to_far_.empty() && ssh_channel_window_size(far_) > 0) {
    const int n = ssh_channel_write(
        far_, to_far_.data(), static_cast<std::uint32_t>(std::min(to_far_.size(), kPumpedPiece)));
    if (n == SSH_ERROR) return false;
    if (n <= 0) break;
    to_far_.erase(0, static_cast<std::size_t>(n));
  }
  if (near_has_ended_ && to_far_.empty() && !eof_is_sent_) {
    ssh_channel_send_eof(far_);
    eof_is_sent_ = true;
  }
  return true;
}

/// What the near end does not take stays in the channel, whose window then closes.
void Pump::take_far() {
  while (to_near_.size() < kMostOnTheWay) {
    const int n = ssh_channel_read_nonblocking(far_, buffer_.data(),
                                               static_cast<std::uint32_t>(buffer_.size()), 0);
    if (n <= 0) return;
    to_near_.append(buffer_.data(), static_cast<std::size_t>(n));
  }
}

bool Pump::give_near() {
  while (!to_near_.empty()) {
    const ssize_t n = ::send(near_, to_near_.data(), to_near_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (n <= 0) break;
    to_near_.erase(0, static_cast<std::size_t>(n));
  }
  return true;
}

bool Pump::wait() {
  const bool wants_more = to_far_.size() < kMostOnTheWay && !near_has_ended_;
  const int events = (wants_more ? POLLIN : 0) | (to_near_.empty() ? 0 : POLLOUT);
  std::array<pollfd, 1> waits{{{near_, static_cast<short>(events), 0}}};
  session_.wait(std::chrono::steady_clock::now() + std::chrono::seconds(1), waits);
  // Nobody reads an answer any more, and a far end that takes nothing would be waited for without
  // end.
  return !(eof_is_sent_ || near_has_ended_) || (waits[0].revents & POLLHUP) == 0;
}

}  // namespace hpcbatch
