#include "cli/top/canvas.hpp"

#include "cli/show/table.hpp"
#include "documents/texts.hpp"

#include <algorithm>

namespace hpcbatch::top {
namespace {

/// To move the cursor costs about as much as to write so many cells again.
constexpr std::size_t kNear = 6;

std::string words_of(Style style, const Abilities& abilities) {
  std::string words = "\x1b[0";
  if (style.is_bold) words += ";1";
  if (style.is_reversed) words += ";7";
  if (abilities.has_colours && style.colour == Colour::Grey) words += ";90";
  if (abilities.has_colours && style.colour != Colour::Plain && style.colour != Colour::Grey)
    words += ";3" + std::to_string(static_cast<int>(style.colour));
  return words + "m";
}

bool is_ascii(const std::string& text) {
  return text.size() == 1 && static_cast<unsigned char>(text[0]) < 0x80;
}

/// Writes cells one after another and knows where a cursor stands and how it writes.
class Pen {
 public:
  explicit Pen(const Abilities& abilities) : abilities_(abilities) {}

  void put(std::size_t row, std::size_t column, const Canvas::Cell& cell) {
    if (row != row_ || column != column_)
      out_ += "\x1b[" + std::to_string(row + 1) + ";" + std::to_string(column + 1) + "H";
    if (!has_style_ || cell.style != style_) out_ += words_of(cell.style, abilities_);
    has_style_ = true;
    style_ = cell.style;
    row_ = row;
    column_ = column + 1;
    if (is_ascii(cell.text)) {
      out_ += cell.text;
    } else if (abilities_.is_utf8) {
      out_ += cell.text;
      // Terminals do not agree on how wide some letters are.
      column_ = kNowhere;
    } else {
      out_ += cell.text.empty() ? " " : "?";
    }
  }
  std::string take() {
    if (has_style_) out_ += "\x1b[0m";
    return std::move(out_);
  }

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  const Abilities& abilities_;
  std::string out_;
  std::size_t row_{kNowhere}, column_{kNowhere};
  bool has_style_{false};
  Style style_;
};

}  // namespace

Canvas::Canvas(std::size_t rows, std::size_t columns)
    : rows_(rows), columns_(columns), cells_(rows * columns) {}

void Canvas::clear(std::size_t row, std::size_t column) {
  if (cell(row, column).text.empty() && column > 0) cell(row, column - 1).text = " ";
  if (column + 1 < columns_ && cell(row, column + 1).text.empty()) cell(row, column + 1).text = " ";
}

std::size_t Canvas::put(std::size_t row, std::size_t column, std::string_view text, Style style) {
  if (row >= rows_) return column;
  const std::string shown = one_line(text);
  for (std::size_t at = 0; at < shown.size();) {
    const Letter letter = first_letter(std::string_view(shown).substr(at));
    const std::string_view sign = std::string_view(shown).substr(at, letter.bytes);
    at += letter.bytes;
    if (letter.columns == 0) {
      // A few marks on one letter are a language, hundreds an attack.
      constexpr std::size_t kMostBytes = 24;
      if (column > 0 && column <= columns_ && !cell(row, column - 1).text.empty() &&
          cell(row, column - 1).text.size() < kMostBytes)
        cell(row, column - 1).text += sign;
      continue;
    }
    if (column + letter.columns > columns_) break;
    for (std::size_t i = 0; i < letter.columns; ++i) {
      clear(row, column + i);
      cell(row, column + i) = {i == 0 ? std::string(sign) : "", style};
    }
    column += letter.columns;
  }
  return column;
}

void Canvas::put_before(std::size_t row, std::size_t end, std::string_view text, Style style) {
  const std::size_t width = width_of(one_line(text));
  put(row, end - std::min(end, width), text, style);
}

void Canvas::style_row(std::size_t row, Style style) {
  for (std::size_t column = 0; row < rows_ && column < columns_; ++column)
    cell(row, column).style = style;
}

std::string Canvas::text_of(std::size_t row) const {
  std::string text;
  for (std::size_t column = 0; column < columns_; ++column) text += at(row, column).text;
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string changes(const Canvas& before, const Canvas& after, const Abilities& abilities) {
  const bool is_new = before.rows() != after.rows() || before.columns() != after.columns();
  const Canvas blank(after.rows(), after.columns());
  const Canvas& shown = is_new ? blank : before;
  Pen pen(abilities);
  for (std::size_t row = 0; row < after.rows(); ++row) {
    std::size_t drawn = 0;  // behind the last cell that was
    for (std::size_t column = 0; column < after.columns(); ++column) {
      if (shown.at(row, column) == after.at(row, column)) continue;
      std::size_t from = drawn > 0 && column - drawn < kNear ? drawn : column;
      // The first half of a wide letter writes both.
      if (abilities.is_utf8 && after.at(row, from).text.empty() && from > 0) --from;
      for (; from <= column; ++from) {
        if (!after.at(row, from).text.empty() || !abilities.is_utf8)
          pen.put(row, from, after.at(row, from));
      }
      drawn = column + 1;
    }
  }
  return (is_new ? "\x1b[0m\x1b[2J" : "") + pen.take();
}

}  // namespace hpcbatch::top
