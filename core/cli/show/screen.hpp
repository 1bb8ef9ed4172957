// The terminal as a page that is drawn anew; given back as it was.
#pragma once

#include <chrono>
#include <string>

#include <termios.h>

namespace hpcbatch {

/// Standard output must be a terminal.  While it lives, keys come one by one and unechoed.
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

}  // namespace hpcbatch
