#include "accounts/accounts.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

constexpr std::size_t kFirstRoom = std::size_t{1} << 14;
constexpr std::size_t kMostRoom = std::size_t{1} << 24;  // groups of a hundred thousand members

/// `ask` fills the room that it is given and says ERANGE where that is too small.
template <class Ask>
bool asked(std::vector<char>& room, const Ask& ask) {
  for (room.resize(kFirstRoom); room.size() <= kMostRoom; room.resize(room.size() * 4)) {
    const int error = ask();
    if (error != ERANGE) return error == 0;
  }
  return false;
}

std::optional<Account> account_of(uid_t user) {
  std::vector<char> room;
  struct passwd entry {};
  struct passwd* found = nullptr;
  if (!asked(room, [&] { return ::getpwuid_r(user, &entry, room.data(), room.size(), &found); }) ||
      !found)
    return std::nullopt;
  return Account{entry.pw_name, entry.pw_gid};
}

Group group_from(const struct group& entry) {
  Group group{entry.gr_name, {}};
  for (char** member = entry.gr_mem; *member; ++member) group.members.emplace_back(*member);
  return group;
}

void add_group(PathFacts& facts, gid_t id) {
  if (facts.groups.contains(id)) return;
  std::vector<char> room;
  struct group entry {};
  struct group* found = nullptr;
  if (asked(room, [&] { return ::getgrgid_r(id, &entry, room.data(), room.size(), &found); }) &&
      found)
    facts.groups.emplace(id, group_from(entry));
}

void add_group(PathFacts& facts, const std::string& name) {
  std::vector<char> room;
  struct group entry {};
  struct group* found = nullptr;
  if (asked(room,
            [&] { return ::getgrnam_r(name.c_str(), &entry, room.data(), room.size(), &found); }) &&
      found)
    facts.groups.emplace(entry.gr_gid, group_from(entry));
}

void add_account(PathFacts& facts, uid_t user) {
  if (facts.accounts.contains(user)) return;
  if (auto account = account_of(user)) facts.accounts.emplace(user, std::move(*account));
}

/// Most paths are root's and the user's own, and the user database may be far away.
bool needs_names(const PathFacts& facts) {
  return std::any_of(facts.parts.begin(), facts.parts.end(), [&](const PathPart& part) {
    return (part.owner != 0 && part.owner != facts.user) || part.group_writes ||
           (part.others_write && (part.mode & S_ISVTX) == 0) || !part.grants.empty();
  });
}

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

void add_accounts(PathFacts& facts, const std::string& trust_group) {
  if (!trust_group.empty()) add_group(facts, trust_group);
  if (!needs_names(facts)) return;
  add_account(facts, 0);
  add_account(facts, facts.user);
  for (const PathPart& part : facts.parts) {
    add_account(facts, part.owner);
    if (part.group_writes) add_group(facts, part.group);
    for (const Grant& grant : part.grants) {
      if (grant.is_group)
        add_group(facts, grant.id);
      else
        add_account(facts, grant.id);
    }
  }
}

std::optional<Distrust> distrust(const std::string& path, Wanted wanted,
                                 const std::string& trust_group) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  PathFacts facts = walk_path(error ? path : absolute.string(), ::geteuid());
  add_accounts(facts, trust_group);
  return distrust(facts, wanted, trust_group);
}

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
