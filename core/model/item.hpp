// What one task of an array is about: a file, a parameter, a row of a table.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch {

/// A text, and of a row its columns by name.
class Item {
 public:
  Item() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): most items are just that
  Item(std::string text) : text_(std::move(text)) {}

  const std::string& text() const { return text_; }
  /// Also by their numbers, from 1; null: there is none.  A plain text is its own first column.
  const std::string* column(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& columns() const { return columns_; }
  void add_column(std::string name, std::string value);

  /// One text that holds it all, for those with columns.  Neither its texts nor its names hold a
  /// separator (`can_be_packed`).
  std::string packed() const;
  static Item unpacked(std::string_view packed);

 private:
  std::string text_;
  std::vector<std::pair<std::string, std::string>> columns_;
};

/// Equal for two items with the same columns, whatever their order; where there are none, with the
/// same text.
std::string same_item(const Item& item);

/// What the system hands to a program as one argument or variable (MAX_ARG_STRLEN of Linux: 128
/// KiB), less a variable's name.
constexpr std::size_t kLargestItem = (std::size_t{128} << 10) - 32;

/// Free of the two control characters (ASCII's unit and record separator) that keep columns apart.
bool can_be_packed(std::string_view text);

}  // namespace hpcbatch
