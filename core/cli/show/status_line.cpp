#include "cli/show/status_line.hpp"

#include "cli/show/table.hpp"
#include "cli/show/terminal.hpp"
#include "posix/write_all.hpp"

#include <algorithm>

#include <unistd.h>

namespace hpcbatch {

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

}  // namespace hpcbatch
