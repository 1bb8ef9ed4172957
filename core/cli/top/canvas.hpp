// A terminal's page as cells, and the bytes that turn one page into the next.  Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::top {

/// The sixteen colours that every terminal has; people choose what they look like.
enum class Colour : unsigned char { Plain, Red, Green, Yellow, Blue, Magenta, Cyan, Grey };

struct Style {
  Colour colour{Colour::Plain};
  bool is_bold{false};
  bool is_reversed{false};
  bool operator==(const Style&) const = default;
};

/// What a terminal can show.
struct Abilities {
  bool has_colours{true};
  bool is_utf8{true};  ///< without, what is no ASCII is shown as `?`
};

class Canvas {
 public:
  Canvas(std::size_t rows, std::size_t columns);

  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  /// Text from that column on, cut at the page's edge; control characters are shown, never obeyed.
  /// Returns the column behind it.
  std::size_t put(std::size_t row, std::size_t column, std::string_view text, Style style = {});
  /// The same, such that it ends before that column.
  void put_before(std::size_t row, std::size_t end, std::string_view text, Style style = {});
  /// Every cell of the row, its text as it is.
  void style_row(std::size_t row, Style style);
  /// The row's text without the blanks at its end.
  std::string text_of(std::size_t row) const;

  struct Cell {
    std::string text{" "};  ///< empty: the second half of a wide letter
    Style style;
    bool operator==(const Cell&) const = default;
  };
  const Cell& at(std::size_t row, std::size_t column) const {
    return cells_[row * columns_ + column];
  }

 private:
  Cell& cell(std::size_t row, std::size_t column) { return cells_[row * columns_ + column]; }
  /// Half of a wide letter is none.
  void clear(std::size_t row, std::size_t column);

  std::size_t rows_, columns_;
  std::vector<Cell> cells_;
};

/// What a terminal that shows `before` has to be sent to show `after`; of another size: all of it.
std::string changes(const Canvas& before, const Canvas& after, const Abilities& abilities);

}  // namespace hpcbatch::top
