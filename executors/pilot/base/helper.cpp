#include "pilot/base/helper.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>

namespace hpcbatch::pilot {
namespace {

// An answer is a message of a few hundred bytes; a pipe holds 64 KiB, so the child never waits for
// us to read.
constexpr std::size_t kLongestAnswer = std::size_t{32} * 1024;

[[noreturn]] void work_and_answer(const std::function<std::string()>& work, int answer) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // What was open for tasks is theirs to close: a pipe ends when its last holder does.
  constexpr int kAnswer = STDERR_FILENO + 1;
  if (answer != kAnswer) ::dup2(answer, kAnswer);
  ::close_range(kAnswer + 1, ~0U, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGTERM,
           SIG_IGN);  // a batch system's TERM reaches all of us: what was begun is finished
  const std::string text = work().substr(0, kLongestAnswer);
  const ssize_t written = ::write(kAnswer, text.data(), text.size());
  ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
}

std::string answer_from(int fd) {
  std::string text(kLongestAnswer, '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t count = ::read(fd, text.data() + got, text.size() - got);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    got += static_cast<std::size_t>(count);
  }
  text.resize(got);
  return text;
}

}  // namespace

void Helpers::start(const std::function<std::string()>& work, std::string died,
                    std::function<void(const std::string&)> done) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    done(work());  // no descriptors left: slower, but done
    return;
  }
  Fd reading(ends[0]);
  const Fd writing(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) work_and_answer(work, writing.get());
  if (pid < 0) {
    done(work());
    return;
  }
  started_(pid);
  running_[pid] = Helper{std::move(reading), std::move(died), std::move(done)};
}

bool Helpers::reaped(pid_t pid, int status) {
  const auto at = running_.find(pid);
  if (at == running_.end()) return false;
  const Helper helper = std::move(at->second);
  running_.erase(at);
  const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  helper.done(well ? answer_from(helper.answer.get()) : helper.died);
  return true;
}

}  // namespace hpcbatch::pilot
