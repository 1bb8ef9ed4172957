#include "pilot/processes/plain_script.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace hpcbatch::pilot {
namespace {

constexpr std::size_t kLookedAt = 256;
char program_of_scripts[] = "/bin/sh";

bool is_script(const char* path) {
  char head[kLookedAt];
  const int fd = ::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  // It may be executed and not read: then no shell could.
  if (fd < 0) return false;
  const ssize_t size = ::read(fd, head, sizeof head);
  ::close(fd);
  return size > 0 && std::memchr(head, 0, static_cast<std::size_t>(size)) == nullptr;
}

}  // namespace

std::vector<char*> plain_script_argv(const std::vector<char*>& argv) {
  std::vector<char*> words{program_of_scripts, argv.front()};
  words.insert(words.end(), argv.begin() + 1, argv.end());
  return words;
}

void become_plain_script(const char* path, char** shell_argv, char* const* environment) {
  if (is_script(path)) {
    shell_argv[1] = const_cast<char*>(path);
    ::execve(program_of_scripts, shell_argv, environment);
  }
  errno = ENOEXEC;
}

}  // namespace hpcbatch::pilot
