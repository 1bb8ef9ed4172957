// One line of progress on a terminal's standard error, drawn over itself; nothing where it is no
// terminal.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace hpcbatch {

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

}  // namespace hpcbatch
