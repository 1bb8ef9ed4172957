#include "cli/show/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

namespace hpcbatch {

std::optional<TerminalSize> terminal_size(int descriptor) {
  if (::isatty(descriptor) == 0) return std::nullopt;
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
    return TerminalSize{};
  return TerminalSize{size.ws_row, size.ws_col};
}

std::string first_letters(const std::string& line, std::size_t letters) {
  std::size_t seen = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool begins_letter = (static_cast<unsigned char>(line[at]) & 0xC0) != 0x80;
    if (begins_letter && seen++ == letters) return line.substr(0, at);
  }
  return line;
}

}  // namespace hpcbatch
