#include "cli/show/terminal.hpp"

#include "cli/show/table.hpp"
#include "documents/text_check.hpp"
#include "documents/wrap.hpp"
#include "posix/write_all.hpp"

#include <algorithm>
#include <cerrno>

#include <poll.h>
#include <sys/ioctl.h>
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

StatusLine::StatusLine() : is_terminal_(::isatty(STDERR_FILENO) == 1) {}

std::optional<std::size_t> StatusLine::room() const {
  if (!is_terminal_) return std::nullopt;
  // A line that wraps could not be drawn over.
  return std::max<std::size_t>(terminal_size(STDERR_FILENO).value_or(TerminalSize{}).columns, 2) -
         1;
}

void StatusLine::show(const std::string& text) {
  if (!is_terminal_) return;
  const std::string line = first_letters(one_line(text), *room());
  is_drawn_ = true;
  write_all(STDERR_FILENO, "\r\x1b[K" + line);
}

void StatusLine::clear() {
  if (is_drawn_) write_all(STDERR_FILENO, "\r\x1b[K");
  is_drawn_ = false;
}

std::optional<TerminalSize> terminal_size(int descriptor) {
  if (::isatty(descriptor) == 0) return std::nullopt;
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
    return TerminalSize{};
  return TerminalSize{size.ws_row, size.ws_col};
}

std::optional<std::size_t> columns_of_output() {
  const auto size = terminal_size(STDOUT_FILENO);
  return size ? std::optional(size->columns) : std::nullopt;
}

std::string first_letters(const std::string& line, std::size_t letters) {
  std::size_t seen = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool begins_letter = (static_cast<unsigned char>(line[at]) & 0xC0) != 0x80;
    if (begins_letter && seen++ == letters) return line.substr(0, at);
  }
  return line;
}

std::string lines_for(int descriptor, std::string_view said, std::size_t indent) {
  std::string line = show_lines(said);
  const auto size = terminal_size(descriptor);
  const bool is_short = size && width_of(line) <= size->columns;
  if (!size || is_short || size->columns <= 2 * indent || line.find('\n') != line.npos) return line;
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  return std::string(line.substr(0, begin)) +
         wrapped(line.substr(begin), size->columns, begin, indent);
}

}  // namespace hpcbatch
