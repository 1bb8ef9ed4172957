#include "cli/top/screen.hpp"

#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

namespace hpcbatch::top {
namespace {

// A page of its own, no cursor, the buttons of a mouse (xterm's 1000) in decimal (1006).
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?1000h\x1b[?1006h";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?1006l\x1b[?1000l\x1b[?25h\x1b[?1049l";

/// Of the same terminal, so that what has it open as well is not made to wait differently.
Fd open_output() {
  const char* const name = ::ttyname(STDOUT_FILENO);
  Fd opened(name == nullptr ? -1 : ::open(name, O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  return opened.get() >= 0 ? std::move(opened) : Fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
}

}  // namespace

Screen::Screen(Abilities abilities) : abilities_(abilities), output_(open_output()) {
  has_keys_ = ::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before_) == 0;
  enter();
}

Screen::~Screen() {
  leave();
}

void Screen::enter() {
  if (has_keys_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG | IEXTEN);
    raw.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  shown_.reset();
  left_ = kEnter;
}

void Screen::leave() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kPatience{1};
  // A page that it has in part is not shown any more.
  const std::size_t amid = left_.find('\x1b', left_.empty() ? 0 : 1);
  left_ = left_.substr(0, amid).append(kLeave);
  const Clock::time_point until = Clock::now() + kPatience;
  while (write_on() && is_writing() && Clock::now() < until) {
    pollfd ready{output_.get(), POLLOUT, 0};
    ::poll(&ready, 1, 50);
  }
  left_.clear();
  // TCSADRAIN would wait for a terminal that takes nothing.
  if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void Screen::draw(const Canvas& page) {
  if (is_writing()) return;
  left_ = changes(shown_.value_or(Canvas(0, 0)), page, abilities_);
  shown_ = page;
  write_on();
}

bool Screen::write_on() {
  while (!left_.empty()) {
    const ssize_t size = ::write(output_.get(), left_.data(), left_.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno == EAGAIN;
    left_.erase(0, static_cast<std::size_t>(size));
  }
  return true;
}

void Screen::suspend() {
  leave();
  // All of the pipeline, as the terminal itself would.
  ::kill(0, SIGTSTP);
  if (has_keys_) ::tcgetattr(STDIN_FILENO, &before_);
  enter();
}

}  // namespace hpcbatch::top
