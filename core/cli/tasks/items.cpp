#include "cli/tasks/items.hpp"

#include "cli/process/process.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/tasks/submission.hpp"
#include "documents/json_numbers.hpp"
#include "documents/texts.hpp"

#include <hpcbatch/text.hpp>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// More is hardly meant: the product of two long lists.
constexpr std::size_t kMostItems = 5'000'000;
constexpr std::string_view kBlanks = " \t";

using Row = std::vector<std::string>;

struct ItemTable {
  std::vector<Row> rows;
  Row columns;                     ///< their names; empty: none
  json::array objects;             ///< of JSON lines, in place of rows
  std::vector<std::string> texts;  ///< of those, as they stand
};

[[noreturn]] void refuse(const std::string& sentence) {
  throw CommandError(kExitUsage, sentence);
}

std::string place(const SourceText& source, std::size_t line) {
  return source.name + ":" + std::to_string(line + 1) + ": ";
}

/// Lines may end as on Windows.
std::vector<std::string> items_in(const std::string& text, bool end_with_zero) {
  const auto parts = parts_of(text, end_with_zero ? '\0' : '\n');
  std::vector<std::string> items(parts.begin(), parts.end());
  for (std::string& item : items) {
    if (!end_with_zero && item.ends_with('\r')) item.pop_back();
  }
  return items;
}

struct Quoted {
  std::string value;
  std::size_t end{0};           ///< behind it
  const char* wrong = nullptr;  ///< why it is none
};

/// A value in quotation marks as RFC 4180 has it, which begins at `at`.
Quoted quoted_value(const std::string& line, std::size_t at, const std::string& separator) {
  Quoted found;
  for (++at;; ++at) {
    const std::size_t end = line.find('"', at);
    if (end == std::string::npos) return {.wrong = "a quotation mark is not closed"};
    found.value.append(line, at, end - at);
    at = end + 1;
    if (at >= line.size() || line[at] != '"') break;
    found.value += '"';
  }
  if (at < line.size() && line.compare(at, separator.size(), separator) != 0)
    return {.wrong = "something stands behind a closing quotation mark"};
  found.end = at;
  return found;
}

Row split_at_blanks(const std::string& line) {
  Row row;
  for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string::npos;
       at = line.find_first_not_of(kBlanks, at)) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    row.push_back(line.substr(at, end - at));
    at = end;
  }
  return row;
}

Row split(const std::string& line, const std::string& separator, const std::string& where) {
  if (separator.empty()) return {line};
  if (separator == "space") return split_at_blanks(line);
  // There is no quoting in the format itself (IANA, text/tab-separated-values), but spreadsheets quote.
  const bool may_stand_alone = separator == "\t";
  Row row;
  for (std::size_t at = 0;;) {
    std::optional<Quoted> quoted;
    if (at < line.size() && line[at] == '"') quoted = quoted_value(line, at, separator);
    if (quoted && quoted->wrong != nullptr) {
      if (!may_stand_alone) refuse(where + quoted->wrong);
      quoted.reset();
    }
    const std::size_t end = quoted ? quoted->end : std::min(line.find(separator, at), line.size());
    row.push_back(quoted ? std::move(quoted->value) : line.substr(at, end - at));
    at = end;
    if (at >= line.size()) return row;
    at += separator.size();
  }
}

bool is_blank(const std::string& line) {
  return line.find_first_not_of(kBlanks) == std::string::npos;
}

/// JSON lines are known by their first.
bool has_objects(const SourceText& source) {
  const auto first = std::find_if_not(source.lines.begin(), source.lines.end(), is_blank);
  return source.is_file && first != source.lines.end() && json_fields(*first).has_value();
}

ItemTable objects_of(const SourceText& source) {
  ItemTable table;
  for (std::size_t i = 0; i < source.lines.size(); ++i) {
    const std::string& line = source.lines[i];
    if (is_blank(line)) continue;
    const auto fields = json_fields(line);
    if (!fields) refuse(place(source, i) + "this line is no JSON object, though the first one is");
    json::object object;
    for (const auto& [name, value] : *fields) {
      if (!object.emplace(name, value).second)
        refuse(place(source, i) + "'" + name + "' is there twice");
    }
    table.objects.emplace_back(std::move(object));
    table.texts.push_back(line);
  }
  return table;
}

void check_text(const SourceText& source, std::size_t number, const ItemOptions& options) {
  const std::string& line = source.lines[number];
  const auto which = [&] {
    return (source.is_file && !options.null ? "line " : "item ") + std::to_string(number + 1) +
           " of " + source.name;
  };
  if (number == 0 && source.is_file &&
      (line.starts_with("\xff\xfe") || line.starts_with("\xfe\xff")))
    refuse(source.name + " begins like UTF-16; 'iconv -f UTF-16 -t UTF-8' makes a list of it");
  const bool is_like_json = source.is_file && options.columns.empty() && line.starts_with("{\"");
  if (is_like_json && find_invalid_utf8(line))
    refuse(which() + " begins as JSON lines do, which are UTF-8, and is none: '" + show_text(line) +
           "'");
  if (line.find('\0') != std::string::npos)
    refuse(which() + " holds a zero byte; --null takes items that end with one");
}

ItemTable read_table(const SourceText& source, const ItemOptions& options) {
  const bool is_tab = options.columns == "tab" || options.columns == "\\t";
  const std::string separator = is_tab ? "\t" : options.columns;
  if (separator.empty() && !options.header && has_objects(source)) return objects_of(source);
  ItemTable table;
  bool is_header = options.header;
  for (std::size_t i = 0; i < source.lines.size(); ++i) {
    const std::string& line = source.lines[i];
    // A word of the command line is one, whatever it is.
    if (line.empty() && source.is_file) continue;
    check_text(source, i, options);
    Row row = split(line, separator, place(source, i));
    const std::size_t columns = !table.columns.empty() ? table.columns.size()
                                : !table.rows.empty()  ? table.rows.front().size()
                                                       : row.size();
    if (row.size() != columns)
      refuse(place(source, i) + "this line has " + std::to_string(row.size()) +
             " columns, and the first one has " + std::to_string(columns));
    if (std::exchange(is_header, false))
      table.columns = std::move(row);
    else
      table.rows.push_back(std::move(row));
  }
  return table;
}

ItemTable linked(std::vector<ItemTable> tables, const std::vector<SourceText>& sources) {
  ItemTable out = std::move(tables.front());
  for (std::size_t i = 1; i < tables.size(); ++i) {
    if (tables[i].rows.size() != out.rows.size()) {
      refuse("--link takes as many from each: " + sources[0].name + " has " +
             std::to_string(out.rows.size()) + " items, and " + sources[i].name + " has " +
             std::to_string(tables[i].rows.size()));
    }
    for (std::size_t row = 0; row < out.rows.size(); ++row)
      out.rows[row].insert(out.rows[row].end(), tables[i].rows[row].begin(),
                           tables[i].rows[row].end());
    out.columns.insert(out.columns.end(), tables[i].columns.begin(), tables[i].columns.end());
  }
  return out;
}

ItemTable all_combinations(std::vector<ItemTable> tables) {
  ItemTable out = std::move(tables.front());
  for (std::size_t i = 1; i < tables.size(); ++i) {
    if (out.rows.size() > kMostItems / tables[i].rows.size())
      refuse("there are over " + std::to_string(kMostItems) +
             " combinations; --link takes the first of each, the second of each and so on");
    std::vector<Row> rows;
    rows.reserve(out.rows.size() * tables[i].rows.size());
    for (const Row& left : out.rows) {
      for (const Row& right : tables[i].rows) {
        rows.push_back(left);
        rows.back().insert(rows.back().end(), right.begin(), right.end());
      }
    }
    out.rows = std::move(rows);
    out.columns.insert(out.columns.end(), tables[i].columns.begin(), tables[i].columns.end());
  }
  return out;
}

Items from(ItemTable table, const ItemOptions& options) {
  Items items;
  items.columns = std::move(table.columns);
  if (!table.objects.empty()) {
    items.items = std::move(table.objects);
    items.texts = std::move(table.texts);
    return items;
  }
  const bool are_texts =
      options.columns.empty() && items.columns.empty() && table.rows.front().size() == 1;
  for (Row& row : table.rows) {
    if (are_texts)
      items.items.emplace_back(std::move(row.front()));
    else
      items.items.emplace_back(json::array(row.begin(), row.end()));
  }
  return items;
}

/// How long the value is that a text begins with; the text is known to be well formed.
std::size_t size_of_value(std::string_view text) {
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      for (++at; text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth-- == 0) return at;
    } else if ((c == ',' || c == ':') && depth == 0) {
      return at;
    }
  }
  return text.size();
}

std::string plain_value(std::string_view text) {
  text = trimmed(text);
  if (text == "null") return "";
  if (!text.starts_with('"')) return std::string(text);
  return std::string(boost::json::parse({text.data(), text.size()}).as_string());
}

/// Of a well-formed value.
std::string with_quoted_numbers(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (text[at] == '"') {
      for (; text[end] != '"'; ++end) end += text[end] == '\\' ? 1 : 0;
      out += text.substr(at, ++end - at);
    } else if (text[at] == '-' || (text[at] >= '0' && text[at] <= '9')) {
      end = std::min(text.find_first_not_of("+-.0123456789eE", at), text.size());
      out += '"' + std::string(text.substr(at, end - at)) + '"';
    } else {
      out += text[at];
    }
    at = end;
  }
  return out;
}

}  // namespace

Items items_of(const std::vector<SourceText>& sources, const ItemOptions& options) {
  std::vector<ItemTable> tables;
  for (const SourceText& source : sources) {
    tables.push_back(read_table(source, options));
    if (tables.back().rows.empty() && tables.back().objects.empty())
      refuse(source.name + " has no items: there is nothing to run");
    if (sources.size() > 1 && !tables.back().objects.empty())
      refuse(source.name + " has JSON lines, which stand alone: put all fields into them");
  }
  return from(
      options.link ? linked(std::move(tables), sources) : all_combinations(std::move(tables)),
      options);
}

Items read_items(const ItemOptions& options, const Interrupt& interrupt) {
  std::vector<SourceText> sources;
  for (const ItemSource& source : options.sources) {
    if (source.file.empty())
      sources.push_back({"--items", source.words, false});
    else
      sources.push_back({source.file == "-" ? "standard input" : source.file,
                         items_in(read_input(source.file, interrupt), options.null)});
  }
  return items_of(sources, options);
}

Item item_of(const json::value& item, const std::vector<std::string>& columns) {
  const auto text = [](const json::value& value) {
    if (value.is_null()) return std::string();
    return value.is_string() ? std::string(value.get_string())
                             : with_plain_numbers(json::serialize(value));
  };
  Item out;
  if (const json::object* fields = item.if_object()) {
    for (const auto& [name, value] : *fields) out.add_column(std::string(name), text(value));
    return out;
  }
  const json::array* row = item.if_array();
  if (row == nullptr) return Item(text(item));
  for (std::size_t i = 0; i < row->size(); ++i)
    out.add_column(i < columns.size() ? columns[i] : std::to_string(i + 1), text((*row)[i]));
  return out;
}

std::vector<std::string> items_to_compare(const boost::json::object& task) {
  std::vector<std::string> compared, columns;
  if (const boost::json::array* names = array_at(task, "columns")) {
    for (const boost::json::value& name : *names) columns.emplace_back(name.as_string());
  }
  if (const boost::json::array* items = array_at(task, "items")) {
    for (const boost::json::value& item : *items)
      compared.push_back(same_item(item_of(item, columns)));
  }
  return compared;
}

IndexSet left_items(const std::vector<std::string>& items,
                    std::unordered_map<std::string, std::size_t> times_done) {
  IndexSet left;
  std::uint32_t number = 0;
  for (const std::string& item : items) {
    ++number;
    const auto found = times_done.find(item);
    if (found == times_done.end() || found->second == 0)
      left.add(number);
    else
      --found->second;
  }
  return left;
}

LeftOut leave_out_done(boost::json::object& task, const ManyOptions& many,
                       std::unordered_map<std::string, std::size_t> times_done) {
  const std::vector<std::string> items = items_to_compare(task);
  const IndexSet not_done = left_items(items, std::move(times_done));
  IndexSet left = not_done;
  if (const boost::json::value* chosen = task.if_contains("array"))
    left = left.intersection(parse_index_set(std::string(chosen->as_string())).value_or(left));
  if (!left.empty()) task["array"] = to_string(left);
  bound_failures(task, many, left.size());
  return {items.size() - not_done.size(), left.size(), items.size()};
}

bool tell_left(const LeftOut& items, const std::string& submissions) {
  say(std::to_string(items.out) + " of " + std::to_string(items.all) + " items ended well in " +
      submissions + " and are left out" + (items.left == 0 ? "; nothing is left to run" : ""));
  return items.left > 0;
}

std::optional<std::vector<std::pair<std::string, std::string>>> json_fields(std::string_view line) {
  boost::system::error_code error;
  const boost::json::value whole = boost::json::parse({line.data(), line.size()}, error);
  if (error || !whole.is_object()) return std::nullopt;
  std::vector<std::pair<std::string, std::string>> fields;
  std::string_view rest = trimmed(line);
  rest.remove_prefix(1);
  while (!trimmed(rest).starts_with('}')) {
    std::size_t size = size_of_value(rest);
    std::string name = plain_value(rest.substr(0, size));
    rest.remove_prefix(size + 1);
    size = size_of_value(rest);
    fields.emplace_back(std::move(name), plain_value(rest.substr(0, size)));
    rest.remove_prefix(size);
    if (rest.starts_with(',')) rest.remove_prefix(1);
  }
  return fields;
}

std::string with_numbers_as_texts(std::string_view line,
                                  const std::function<bool(std::string_view name)>& is_text) {
  boost::system::error_code error;
  const boost::json::value whole = boost::json::parse({line.data(), line.size()}, error);
  if (error || !whole.is_object()) return std::string(line);
  std::string_view rest = trimmed(line);
  std::string out(1, '{');
  rest.remove_prefix(1);
  while (!trimmed(rest).starts_with('}')) {
    std::size_t size = size_of_value(rest);
    const std::string name = plain_value(rest.substr(0, size));
    out += std::string(rest.substr(0, size)) + ":";
    rest.remove_prefix(size + 1);
    size = size_of_value(rest);
    const std::string_view value = rest.substr(0, size);
    out += is_text(name) ? with_quoted_numbers(value) : std::string(value);
    rest.remove_prefix(size);
    if (!rest.starts_with(',')) continue;
    out += ',';
    rest.remove_prefix(1);
  }
  return out + "}";
}

}  // namespace hpcbatch
