#include "tool_host/frames.hpp"

#include <array>
#include <cerrno>
#include <cstdint>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hpcbatch::tool_host {
namespace {

constexpr std::size_t kHead = 4;

/// False: it does not become ready in time.
bool is_ready(int socket, short what, const std::optional<FrameDeadline>& deadline) {
  for (;;) {
    int left = -1;
    if (deadline) {
      const auto time = std::chrono::ceil<std::chrono::milliseconds>(
          *deadline - std::chrono::steady_clock::now());
      if (time.count() <= 0) return false;
      left = static_cast<int>(time.count());
    }
    pollfd wait{socket, what, 0};
    const int count = ::poll(&wait, 1, left);
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

bool send_all(int socket, std::string_view bytes, const std::optional<FrameDeadline>& deadline) {
  while (!bytes.empty()) {
    if (!is_ready(socket, POLLOUT, deadline)) return false;
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool receive_all(int socket, char* to, std::size_t size,
                 const std::optional<FrameDeadline>& deadline) {
  while (size > 0) {
    if (!is_ready(socket, POLLIN, deadline)) return false;
    const ssize_t got = ::recv(socket, to, size, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return false;
    to += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

bool send_frame(int socket, std::string_view text, std::optional<FrameDeadline> deadline) {
  if (text.size() > kLongestFrame) return false;
  std::string head;
  for (const unsigned shift : {24U, 16U, 8U, 0U})
    head += static_cast<char>(static_cast<std::uint32_t>(text.size()) >> shift & 0xffU);
  return send_all(socket, head, deadline) && send_all(socket, text, deadline);
}

std::optional<std::string> receive_frame(int socket, std::optional<FrameDeadline> deadline) {
  std::array<char, kHead> head{};
  if (!receive_all(socket, head.data(), head.size(), deadline)) return std::nullopt;
  std::size_t size = 0;
  for (const char byte : head) size = size << 8U | static_cast<unsigned char>(byte);
  if (size > kLongestFrame) return std::nullopt;
  std::string text(size, '\0');
  if (!receive_all(socket, text.data(), size, deadline)) return std::nullopt;
  return text;
}

}  // namespace hpcbatch::tool_host
