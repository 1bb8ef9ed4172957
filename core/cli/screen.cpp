#include "cli/screen.hpp"

#include "cli/descriptor.hpp"

#include <cerrno>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

/// The first bytes of `line` that show as at most `columns` letters.
std::string cut(const std::string& line, std::size_t columns) {
  std::size_t letters = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool begins_letter = (static_cast<unsigned char>(line[at]) & 0xC0) != 0x80;
    if (begins_letter && letters++ == columns) return line.substr(0, at);
  }
  return line;
}

}  // namespace

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
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    size.ws_row = 24;
    size.ws_col = 80;
  }
  std::string out = "\x1b[H";
  std::size_t begin = 0;
  for (unsigned row = 0; row < size.ws_row && begin < text.size(); ++row) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    // Clears the rest of each line instead of the page, which would flicker.
    out += (row == 0 ? "" : "\r\n") + cut(text.substr(begin, end - begin), size.ws_col) + "\x1b[K";
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
