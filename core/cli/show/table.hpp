// Texts in aligned columns for people, safe to look at whatever the texts hold.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

class Table {
 public:
  enum class Side { Left, Right };
  struct Column {
    std::string title;
    Side side{Side::Left};
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// As many texts as there are columns; control bytes are shown as `\xNN`.
  void add(std::vector<std::string> row);
  bool empty() const { return rows_.empty(); }
  /// What becomes of a last column that there is no room for.
  enum class Last {
    Cut,     ///< it ends with "..."
    Wrapped  ///< it goes on in the lines below
  };
  /// With a line of titles; columns in which no row has a text are left out.  `room`: letters on a
  /// line.
  std::string text(std::optional<std::size_t> room = {}, Last last = Last::Cut) const;
  /// Of the longest line, where there is room for all.
  std::size_t width() const;
  /// Of its last column that has a text.
  std::size_t width_of_last() const;

 private:
  struct Layout {
    std::vector<std::size_t> widths;  ///< of each column
    std::vector<std::size_t> shown;   ///< those that have a text
    std::size_t before_last{0};       ///< letters
  };
  Layout layout() const;
  std::string line(const Layout& layout, const std::vector<std::string>& cells,
                   std::optional<std::size_t> room, Last last) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

struct NameAndValue {
  std::string name, value;
  bool may_break{false};  ///< over several lines, at its blanks
};
/// Below each other, the values aligned; those without text are left out.
std::string aligned_pairs(const std::vector<NameAndValue>& pairs,
                          std::optional<std::size_t> room = {});

/// The text with control bytes, newlines and tabs too, and invalid UTF-8 as `\xNN`: one line, no
/// surprises.
std::string one_line(std::string_view text);

}  // namespace hpcbatch
