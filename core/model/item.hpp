// What one task of an array is about (a file, a parameter, a row of a table), and the braces in
// which it is put into texts.
#pragma once

#include "model/ids.hpp"

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch {

// What one task of an array is about: a file, a parameter, a row of a table.

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

// What stands for each task of an array in what all of them share: `{}`, `{2}` or `{sample}` for
// columns, `{index}`, `{id}`, and parts of items that are paths.

// An item or a part of it is `{}`, `{.}` (without its ending), `{/}` (the name without the folder),
// `{//}` (the folder), `{/.}` (the name without its ending); of a column `{2}`, `{2.}`, `{2/}` and
// so on, or with its name for the number.  As GNU parallel has them.  `{:q}`, `{2/.:q}` and so on put
// it in quotes for a shell, `{:raw}` as it is into a word that looks like a program
// (program_words.hpp).

/// What `{{` and `}}` are.  In names (of files, folders, tasks) each stands for one brace that is meant
/// as it stands.  In a command they are other languages': `docker inspect -f '{{.Name}}'`.
enum class Doubled : bool { OneBrace, AsTheyStand };

/// A name in which nothing is replaced: its braces doubled.
std::string as_it_stands(std::string_view name);
/// A name whose places stay places, and whose doubled braces are one.
std::string without_doubled(std::string_view name);

/// Whether the item, a part of it or one of its columns is asked for, in a name.
bool has_item(std::string_view name, const Item& item = {});
/// The first of those of a command, as it is written; empty: none.
std::string_view first_item_place(std::string_view text, const Item& item = {});
/// Each of those of a command as one of the characters that `misplaced_text` knows.
std::string with_places_marked(std::string_view text, const Item& item);
/// Whether a path is absolute where every item, or column, is.
bool begins_with_item(std::string_view path);
/// Names and numbers in braces; what is a variable of a shell, as `${NAME}`, is none.
std::vector<std::string_view> columns_asked_for(std::string_view text,
                                                Doubled doubled = Doubled::OneBrace);
/// What looks like a place, with its braces, and would be replaced by nothing that the item has:
/// `{sampel}`, `{2}` of a plain text, `{%}` of GNU parallel, and of `{index}` and `{id}` those that
/// are not `known` (their names).  No place of ours is what belongs to another language by the sign
/// before it (`${x}`, `%{http_code}`, `@{u}`, `[0-9]{4}`).
std::vector<std::string_view> stray_places(std::string_view text, const Item& item,
                                           std::initializer_list<std::string_view> known,
                                           Doubled doubled = Doubled::OneBrace);
/// Those of a name replaced.
std::string with_item(std::string_view name, const Item& item);
/// Those of a command, and `{#}`, the index.
std::string with_item(std::string_view text, const Item& item, std::uint32_t index);

/// Whether a path names another file for each task: by the item (or the index where there are no
/// items), `{index}` or `{#}`, or `{id}`.
bool has_place(std::string_view path, const Item& item = {});
bool has_index(std::string_view path, const Item& item = {});
/// Only an engine that has taken the task knows it.
bool has_id(std::string_view path, const Item& item = {});
/// What of a task stands for places, beside its item.
struct PlaceValues {
  TaskId task;
  std::optional<std::uint32_t> index{};   ///< where it is another than in the task's id
  std::optional<std::uint32_t> number{};  ///< of one that is numbered (batch_number.hpp)
  std::string_view node{"{node}"};        ///< of one that is numbered: only its pilot knows it
};
/// All of them replaced; what an item has of them itself stays.  `{number}`, `{array_number}` and
/// `{node}` are only where the task has a number.  `{index:4}` has four digits at least, and so have `{id:4}` and the
/// numbers.
std::string with_places(std::string_view path, const PlaceValues& values,
                        const std::optional<Item>& item);

}  // namespace hpcbatch
