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
  /// With a line of titles; columns in which no row has a text are left out.  Where there is room
  /// for so many letters on a line only, the last column is cut, which ends with "..." then.
  std::string text(std::optional<std::size_t> room = {}) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Names and values below each other, the values aligned; values without text are left out.
std::string aligned_pairs(const std::vector<std::pair<std::string, std::string>>& pairs);

/// The text with control bytes, newlines and tabs too, and invalid UTF-8 as `\xNN`: one line, no
/// surprises.
std::string one_line(std::string_view text);

}  // namespace hpcbatch
