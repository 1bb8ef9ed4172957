#include "pilot/services/service_socket.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstring>

namespace hpcbatch::pilot {

bool socket_pair(Fd& ours, Fd& theirs) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  ours = Fd(ends[0]);
  theirs = Fd(ends[1]);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  return true;
}

Fd in_memory(const std::string& bytes) {
  Fd fd(::memfd_create("hpcbatch-request", MFD_CLOEXEC));
  for (std::size_t done = 0; fd && done < bytes.size();) {
    const ssize_t count = ::write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {};
    done += static_cast<std::size_t>(count);
  }
  if (fd) ::lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

bool send_with_descriptors(int socket, std::string_view text, const std::vector<int>& fds) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 8)> room{};
  iovec piece{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
  std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

std::optional<Heard> receive(int socket, bool with_sender) {
  char bytes[1024];
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> room{};
  iovec piece{bytes, sizeof bytes};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  // Without room the kernel drops descriptors that nobody asked for.
  if (with_sender) {
    message.msg_control = room.data();
    message.msg_controllen = room.size();
  }
  const ssize_t count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (count <= 0) return Heard{true, {}, -1};
  Heard heard{false, std::string(bytes, static_cast<std::size_t>(count)), -1};
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
    heard.sender = sender.pid;
  }
  return heard;
}

}  // namespace hpcbatch::pilot
