#include "pilot/services/service_socket.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

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

namespace {

constexpr std::string_view kVersion = "hpcbatch-request 1";

}  // namespace

std::string to_bytes(const ServiceRequest& request) {
  std::string bytes;
  const auto add = [&bytes](std::string_view field) {
    bytes += field;
    bytes += '\0';
  };
  add(kVersion);
  add(request.directory);
  char octal[16]{};
  if (request.umask)
    std::snprintf(octal, sizeof octal, "%o", static_cast<unsigned>(*request.umask));
  add(octal);
  std::string cpus;
  for (const unsigned cpu : request.cpus) cpus += (cpus.empty() ? "" : ",") + std::to_string(cpu);
  add(cpus);
  std::string files;
  if (request.open_files) {
    const auto number = [](rlim_t limit) {
      return limit == RLIM_INFINITY ? std::string("-1") : std::to_string(limit);
    };
    files = number(request.open_files->rlim_cur) + " " + number(request.open_files->rlim_max);
  }
  add(files);
  add(std::to_string(request.argv.size()));
  for (const std::string& argument : request.argv) add(argument);
  for (char* const* line = request.environment; *line != nullptr; ++line) add(*line);
  return bytes;
}

std::optional<ReadRequest> read_request(const std::string& bytes) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = bytes.find('\0', begin);
    if (end == std::string::npos) return std::nullopt;
    fields.push_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  constexpr std::size_t kBeforeArguments = 6;
  if (fields.size() < kBeforeArguments || fields[0] != kVersion) return std::nullopt;
  const std::size_t arguments = std::strtoul(fields[5].c_str(), nullptr, 10);
  if (arguments == 0 || arguments > fields.size() - kBeforeArguments) return std::nullopt;
  ReadRequest read;
  read.request.directory = fields[1];
  if (!fields[2].empty())
    read.request.umask = static_cast<mode_t>(std::strtoul(fields[2].c_str(), nullptr, 8));
  for (const char* at = fields[3].c_str(); *at != '\0';) {
    char* end = nullptr;
    read.request.cpus.push_back(static_cast<unsigned>(std::strtoul(at, &end, 10)));
    if (end == at) return std::nullopt;
    at = *end == ',' ? end + 1 : end;
  }
  if (!fields[4].empty()) {
    char* end = nullptr;
    const auto limit = [&end](const char* text) {
      return static_cast<rlim_t>(std::strtoll(text, &end, 10));  // -1 is infinity
    };
    const rlim_t soft = limit(fields[4].c_str());
    read.request.open_files = rlimit{soft, limit(end)};
  }
  const auto first = fields.begin() + kBeforeArguments;
  const auto variables = first + static_cast<std::ptrdiff_t>(arguments);
  read.request.argv.assign(first, variables);
  read.environment.assign(variables, fields.end());
  return read;
}

ServiceReply read_reply(const std::string& text) {
  constexpr std::string_view kCannotEnter = "cannot enter ";
  if (text == "here") return Here{};
  if (text.starts_with(kCannotEnter)) {
    const int error = std::atoi(text.c_str() + kCannotEnter.size());
    if (error > 0) return CannotEnter{error};
  }
  return CannotServe{text.empty() ? "it said nothing" : text};
}

namespace {

/// FNV-1a, 64 bits: the same in every build.
std::uint64_t sum_of(const std::string& text) {
  std::uint64_t sum = 0xcbf29ce484222325ULL;
  for (const char letter : text) {
    sum ^= static_cast<unsigned char>(letter);
    sum *= 0x100000001b3ULL;
  }
  return sum;
}

std::string lock_path(const std::string& folder, const std::string& what) {
  char name[64];
  std::snprintf(name, sizeof name, "/hpcbatch-import-%u-%016llx",
                static_cast<unsigned>(::geteuid()), static_cast<unsigned long long>(sum_of(what)));
  return folder + name;
}

bool is_ours_and_at(int file, const std::string& path) {
  struct stat opened {};
  struct stat there {};
  return ::fstat(file, &opened) == 0 && S_ISREG(opened.st_mode) && opened.st_uid == ::geteuid() &&
         ::lstat(path.c_str(), &there) == 0 && there.st_dev == opened.st_dev &&
         there.st_ino == opened.st_ino;
}

}  // namespace

bool ImportLock::begin(const std::string& folder, const std::string& what) {
  end();
  const std::string path = lock_path(folder, what);
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!file) return true;
  // Another user's file is nothing to wait for.
  if (!is_ours_and_at(file.get(), path)) return true;
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  // Whoever had it may have removed it meanwhile.
  if (!is_ours_and_at(file.get(), path)) return false;
  lock_ = std::move(file);
  path_ = path;
  return true;
}

void ImportLock::end() {
  if (!lock_) return;
  ::unlink(path_.c_str());
  lock_.reset();
}

}  // namespace hpcbatch::pilot
