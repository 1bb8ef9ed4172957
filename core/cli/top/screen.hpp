// The terminal that `top` has for itself: raw keys, a page of its own, given back as it was.
#pragma once

#include "cli/top/canvas.hpp"
#include "posix/files.hpp"

#include <optional>
#include <string>

#include <termios.h>

namespace hpcbatch::top {

/// Standard output must be a terminal.  One thread.
class Screen {
 public:
  explicit Screen(Abilities abilities);
  /// Gives the terminal back, also one that takes bytes slowly, but not one that takes none.
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// What has changed since the last page that the terminal got as a whole.
  void draw(const Canvas& page);
  /// A terminal that is slow gets no new page while it has not taken the one before.
  bool is_writing() const { return !left_.empty(); }
  /// What there is room for; false where the terminal is gone.
  bool write_on();
  /// To be waited for: writable.
  int output() const { return output_.get(); }
  /// For keys; -1 where standard input is no terminal.
  int input() const { return has_keys_ ? 0 : -1; }
  /// The next page is drawn as a whole.
  void forget() { shown_.reset(); }
  /// Stops the process, as Ctrl-Z does, and takes the terminal again when it goes on.
  void suspend();
  /// Somebody else may have had it meanwhile.
  void enter();

 private:
  void leave();

  Abilities abilities_;
  termios before_{};
  bool has_keys_{false};
  Fd output_;
  std::optional<Canvas> shown_;
  std::string left_;
};

}  // namespace hpcbatch::top
