#include "cli/show/terminal.hpp"

#include "documents/text_check.hpp"
#include "documents/wrap.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace hpcbatch {

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
