// What comes from a keyboard and a mouse, out of the bytes that a terminal sends.  Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::top {

struct Key {
  enum class Kind {
    Letter,  ///< `text`
    Enter,
    Escape,
    Tab,
    BackTab,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Click,  ///< at `row`, `column`
    WheelUp,
    WheelDown,
    Interrupt,  ///< Ctrl-C, Ctrl-D
    Suspend,    ///< Ctrl-Z
    Redraw,     ///< Ctrl-L
  };
  Kind kind{Kind::Letter};
  std::string text{};  ///< one letter
  std::size_t row{0}, column{0};
  bool operator==(const Key&) const = default;
};

/// A key may come in pieces, as over a slow line.
class KeyReader {
 public:
  std::vector<Key> read(std::string_view bytes);
  /// Nothing more came for a while: an Escape that began nothing was the key.
  std::vector<Key> pause();
  /// Whether `pause` may have something to say.
  bool is_amid() const { return !bytes_.empty(); }

 private:
  std::string bytes_;  ///< that are no whole key yet
};

}  // namespace hpcbatch::top
