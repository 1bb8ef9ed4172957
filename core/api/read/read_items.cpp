#include "api/read/read_items.hpp"

#include "api/read/json_values.hpp"
#include "documents/json_numbers.hpp"
#include "model/item.hpp"
#include "programs/program_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <set>
#include <string_view>

namespace hpcbatch {
namespace {

namespace json = boost::json;

std::string value_of(const json::value& field) {
  if (field.is_string()) return std::string(field.get_string());
  return field.is_null() ? std::string() : with_plain_numbers(json::serialize(field));
}

Item row_of(const json::array& values, const std::vector<std::string>& columns,
            const std::string& where) {
  if (!columns.empty() && values.size() != columns.size())
    throw BadRequest(fmt::format("{} has {} values, and there are {} columns", where, values.size(),
                                 columns.size()));
  std::vector<std::string> texts;
  for (const json::value& value : values) texts.push_back(bytes_of(value, where));
  if (texts.empty()) throw BadRequest(where + " is empty");
  // As GNU parallel has them where the whole is asked for.
  Item item(fmt::format("{}", fmt::join(texts, " ")));
  for (std::size_t i = 0; i < texts.size(); ++i)
    item.add_column(columns.empty() ? std::to_string(i + 1) : columns[i], std::move(texts[i]));
  return item;
}

Item object_of(const json::object& fields, const std::string& where) {
  Item item(with_plain_numbers(json::serialize(fields)));
  for (const auto& [name, value] : fields)
    item.add_column(text_of(json::value(name), where), value_of(value));
  return item;
}

std::string packed(const Item& item, const std::string& where) {
  const bool is_good = can_be_packed(item.text()) &&
                       std::all_of(item.columns().begin(), item.columns().end(), [](const auto& c) {
                         return can_be_packed(c.first) && can_be_packed(c.second);
                       });
  if (!is_good)
    throw BadRequest(where + " holds one of the control characters 0x1e and 0x1f; leave them out");
  return item.packed();
}

void check_size(const std::string& item, const std::string& where) {
  if (item.size() > kLargestItem)
    throw BadRequest(
        fmt::format("{} has {} bytes, more than the {} that the system hands to a "
                    "program; put it into a file and name that",
                    where, item.size(), kLargestItem));
}

/// Of rows and objects, in place of what they would be as one text.
void put_whole_texts(TaskRequest& task, const std::vector<std::string>& texts,
                     const std::string& where) {
  if (!task.items_have_columns || texts.size() != task.items.size())
    throw BadRequest(where + ": there is one 'item_texts' for each item that has columns");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string which = fmt::format("{} {}", where, i + 1);
    check_size(texts[i], which);
    Item item(texts[i]);
    const Item row = Item::unpacked(task.items[i]);
    for (const auto& [name, column] : row.columns()) item.add_column(name, column);
    task.items[i] = packed(item, which);
  }
}

}  // namespace

std::vector<std::string> read_columns(const json::value& value, const std::string& where) {
  std::vector<std::string> names = texts_of(value, where);
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (name.find_first_not_of("0123456789") == std::string::npos)
      throw BadRequest(
          fmt::format("{}: '{}' is no name; columns have numbers by themselves", where, name));
    if (!seen.insert(name).second)
      throw BadRequest(fmt::format("{}: two columns are called '{}'", where, name));
  }
  return names;
}

void read_items_into(TaskRequest& task, const json::value& value,
                     const std::vector<std::string>& columns,
                     const std::vector<std::string>& whole_texts, const std::string& where) {
  if (!value.is_array()) {
    task.items = list_of_bytes(value, where);
    return;
  }
  const json::array& list = value.get_array();
  if (list.empty()) throw BadRequest(where + " is empty: there is nothing to do");
  task.items.reserve(list.size());
  task.items_have_columns = !list.front().is_string();
  for (const json::value& one : list) {
    const std::string which = fmt::format("{} {}", where, task.items.size() + 1);
    if (one.is_string() == task.items_have_columns || one.kind() != list.front().kind())
      throw BadRequest(which +
                       " is of another kind than the first: all are texts, lists of texts, "
                       "or objects");
    const Item item = one.is_array()    ? row_of(one.get_array(), columns, which)
                      : one.is_object() ? object_of(one.get_object(), which)
                                        : Item(bytes_of(one, which));
    check_size(item.text(), which);
    task.items.push_back(task.items_have_columns ? packed(item, which) : item.text());
  }
  if (!whole_texts.empty()) put_whole_texts(task, whole_texts, where);
}

Item item_at(const TaskRequest& task, std::size_t index) {
  const std::string& text = task.items.at(index - 1);
  return task.items_have_columns ? Item::unpacked(text) : Item(text);
}

Item example_item(const TaskRequest& task) {
  return task.items.empty() ? Item() : item_at(task, 1);
}

void check_no_shell_reads_items(const std::vector<std::string>& command, const Item& item,
                                const std::string& what) {
  std::vector<std::string> marked;
  marked.reserve(command.size());
  for (const std::string& word : command) marked.push_back(with_places_marked(word, item));
  const auto text = misplaced_text(marked);
  if (!text) return;
  const std::string_view place = first_item_place(command[text->word], item);
  const std::string_view inner = place.substr(1, place.find_first_of(":}") - 1);
  if (text->word == 0 && text->why == MisplacedText::Why::Suspect) {
    std::string line = command.front();
    line.replace(line.find(place), place.size(), fmt::format("{{{}:q}}", inner));
    throw BadRequest(fmt::format(
        "{}: the command is one word here, and no shell reads it; a line for a shell is: "
        "sh -c '{}'",
        what, line.find('\'') == std::string::npos ? line : "LINE, with {:q} for {}"));
  }
  throw BadRequest(
      fmt::format("{}: {}; or write \"$HPCBATCH_ITEM\" there (items that are commands: "
                  "sh -c 'eval \"$1\"' sh {{}})",
                  what,
                  why_misplaced(*text, place, fmt::format("{{{}:q}}", inner),
                                fmt::format("{{{}:raw}}", inner))));
}

}  // namespace hpcbatch
