#include "pilot/processes/run_program.hpp"

#include "posix/fd.hpp"
#include "posix/spawn_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace hpcbatch::pilot {
namespace {

constexpr std::size_t kMostWords = 4000;
constexpr int kSecond = 1000;

std::string end_of_what_is_printed(int fd, const std::function<void()>& each_second) {
  std::string text;
  char bytes[4096];
  for (;;) {
    pollfd wait{fd, POLLIN, 0};
    if (each_second && ::poll(&wait, 1, kSecond) == 0) {
      each_second();
      continue;
    }
    const ssize_t count = ::read(fd, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(bytes, static_cast<std::size_t>(count));
    if (text.size() > kMostWords) text.erase(0, text.size() - kMostWords);
  }
}

}  // namespace

std::pair<int, std::string> run_program(const std::vector<std::string>& argv,
                                        const std::vector<std::string>& environment,
                                        const std::function<void()>& each_second) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {-1, std::strerror(errno)};
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  pid_t pid = -1;
  const int error = spawn_program(argv,
                                  {.environment = &environment,
                                   .output = writing.get(),
                                   .error = writing.get(),
                                   .unblocks_signals = false},
                                  pid);
  if (error != 0) return {-1, "cannot run " + argv.front() + ": " + std::strerror(error)};
  writing.reset();
  std::string text = end_of_what_is_printed(reading.get(), each_second);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, std::move(text)};
}

}  // namespace hpcbatch::pilot
