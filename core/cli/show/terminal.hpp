// The terminal: how much room it has, a line of progress on it, and a page that is drawn anew.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <termios.h>

namespace hpcbatch {

/// The terminal as a page, given back as it was.  Standard output must be one.  While it lives, keys come one by one and unechoed.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// As many lines of `text`, and as much of each, as the terminal has room for.
  void draw(const std::string& text);
  /// False when the user pressed q or Ctrl-C, or `interrupt` became readable.
  bool wait(std::chrono::milliseconds time, int interrupt);

 private:
  termios before_{};
  bool has_keys_{false};
};

/// One line of progress on a terminal's standard error, drawn over itself; nothing where it is no
/// terminal.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool is_visible() const { return is_terminal_; }
  /// How many letters it shows; nothing where it is no terminal.
  std::optional<std::size_t> room() const;
  void show(const std::string& text);
  /// Before anything else is written to the terminal.
  void clear();

 private:
  bool is_terminal_;
  bool is_drawn_{false};
};

struct TerminalSize {
  std::size_t rows{24};
  std::size_t columns{80};
};

/// Nothing where the descriptor is no terminal; 24 by 80 where one does not tell.
std::optional<TerminalSize> terminal_size(int descriptor);

/// How many letters a line of standard output has room for; nothing where it is no terminal.
std::optional<std::size_t> columns_of_output();

/// The first bytes of a line that show as at most so many letters.
std::string first_letters(const std::string& line, std::size_t letters);

/// The line as it can be shown (show_lines), or, on a terminal, as several that it does not cut; those behind the first are
/// indented.
std::string lines_for(int descriptor, std::string_view said, std::size_t indent);

}  // namespace hpcbatch
