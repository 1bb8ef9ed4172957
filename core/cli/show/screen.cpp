#include "cli/show/screen.hpp"

#include "cli/show/terminal.hpp"
#include "posix/write_all.hpp"

#include <cerrno>

#include <poll.h>
#include <unistd.h>

namespace hpcbatch {

Screen::Screen() {
  has_keys_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
  if (has_keys_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  write_all(STDOUT_FILENO, "\x1b[?1049h\x1b[?25l");  // a page of its own, no cursor
}

Screen::~Screen() {
  write_all(STDOUT_FILENO, "\x1b[?25h\x1b[?1049l");
  if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void Screen::draw(const std::string& text) {
  const TerminalSize size = terminal_size(STDOUT_FILENO).value_or(TerminalSize{});
  std::string out = "\x1b[H";
  std::size_t begin = 0;
  for (std::size_t row = 0; row < size.rows && begin < text.size(); ++row) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    // Clears the rest of each line instead of the page, which would flicker.
    out += (row == 0 ? "" : "\r\n") + first_letters(text.substr(begin, end - begin), size.columns) +
           "\x1b[K";
    begin = end + 1;
  }
  write_all(STDOUT_FILENO, out + "\x1b[J");
}

bool Screen::wait(std::chrono::milliseconds time, int interrupt) {
  pollfd waits[] = {{interrupt, POLLIN, 0}, {has_keys_ ? STDIN_FILENO : -1, POLLIN, 0}};
  const int count = ::poll(waits, 2, static_cast<int>(time.count()));
  if (count <= 0) return true;
  if (waits[0].revents != 0) return false;
  char key = 0;
  const ssize_t size = ::read(STDIN_FILENO, &key, 1);
  if (size < 0) return errno == EINTR || errno == EAGAIN;
  constexpr char kEndOfInput = 4;
  return size > 0 && key != 'q' && key != 'Q' && key != kEndOfInput;
}

}  // namespace hpcbatch
