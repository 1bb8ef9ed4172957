#include "accounts/as_user.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

constexpr int kPatienceMs = 60'000;

/// By the system calls themselves: the C library's would ask other threads to follow, and here are
/// none.  The real user stays root's, so that he whose rights are taken cannot stop this process.
bool become(const UserRights& who) {
  const auto none = static_cast<gid_t>(-1);
  const gid_t group = who.groups.empty() ? static_cast<gid_t>(65'534) : who.groups.front();
  return ::syscall(SYS_setgroups, who.groups.size(), who.groups.data()) == 0 &&
         ::syscall(SYS_setresgid, group, group, group) == 0 &&
         ::syscall(SYS_setresuid, none, who.user, none) == 0;
}

/// An answer, and the descriptor with it where there is one.
struct Message {
  explicit Message(int& error) : piece{&error, sizeof error} {
    head.msg_iov = &piece;
    head.msg_iovlen = 1;
    head.msg_control = room.data();
    head.msg_controllen = room.size();
  }
  iovec piece;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  msghdr head{};
};

void answer(int socket, int error, int descriptor) {
  Message message(error);
  if (descriptor >= 0) {
    cmsghdr* const head = CMSG_FIRSTHDR(&message.head);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  } else {
    message.head.msg_control = nullptr;
    message.head.msg_controllen = 0;
  }
  (void)!::sendmsg(socket, &message.head, MSG_NOSIGNAL);
}

int hear(int socket, Fd* opened) {
  pollfd ready{socket, POLLIN, 0};
  int polled = 0;
  while ((polled = ::poll(&ready, 1, kPatienceMs)) < 0 && errno == EINTR) {
  }
  if (polled == 0) return ETIMEDOUT;
  int error = EIO;  // it ended without an answer
  Message message(error);
  ssize_t size = 0;
  while ((size = ::recvmsg(socket, &message.head, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  if (size != sizeof error) return EIO;
  const cmsghdr* const head = CMSG_FIRSTHDR(&message.head);
  if (head && head->cmsg_type == SCM_RIGHTS) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
    Fd taken(descriptor);
    if (opened) *opened = std::move(taken);
  }
  return error;
}

int here(const std::function<int()>& work, Fd* opened) {
  const int done = work();
  if (done < 0) return errno;
  if (opened) *opened = Fd(done);
  return 0;
}

}  // namespace

UserRights rights_of_user(uid_t user) {
  UserRights rights{.user = user, .groups = {}};
  struct passwd entry {};
  struct passwd* found = nullptr;
  std::vector<char> text(std::size_t{1} << 16);
  if (::getpwuid_r(user, &entry, text.data(), text.size(), &found) != 0 || !found) return rights;
  int count = 64;
  rights.groups.resize(static_cast<std::size_t>(count));
  while (::getgrouplist(entry.pw_name, entry.pw_gid, rights.groups.data(), &count) < 0)
    rights.groups.resize(static_cast<std::size_t>(count));
  rights.groups.resize(static_cast<std::size_t>(count));
  return rights;
}

bool may_be_others() {
  return ::geteuid() == 0;
}

int as_user(const UserRights& who, const std::function<int()>& work, Fd* opened) {
  if (who.user == ::geteuid()) return here(work, opened);
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return errno;
  const Fd ours(ends[0]);
  Fd theirs(ends[1]);
  const pid_t process = ::fork();
  if (process < 0) return errno;
  if (process == 0) {
    const int done = become(who) ? work() : -1;
    answer(theirs.get(), done < 0 ? errno : 0, opened ? done : -1);
    ::_exit(0);
  }
  theirs.reset();
  const int error = hear(ours.get(), opened);
  if (error == ETIMEDOUT) ::kill(process, SIGKILL);
  while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
  return error;
}

}  // namespace hpcbatch
