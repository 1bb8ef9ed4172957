// Values of the engine's JSON, and as people read them.  Each is an empty text where the key is not
// there.
#pragma once

#include "cli/show/table.hpp"

#include <boost/json/object.hpp>

#include <cstddef>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

/// Any scalar as it is; a list of texts joined by `, `.
std::string text_at(const boost::json::object& object, std::string_view key);
/// Local time: `2026-01-31 12:00:05`.
std::string time_at(const boost::json::object& object, std::string_view key);
/// As short as a table needs it: `12:00:05` on the day of `now`, `01-31 12:00` on others.
std::string moment_at(const boost::json::object& object, std::string_view key, std::time_t now);
/// The same as of now.
std::string soon_at(const boost::json::object& object, std::string_view key);
/// Seconds -> `1h30m`.
std::string duration_at(const boost::json::object& object, std::string_view key);
/// Bytes -> `1.5G`.
std::string size_at(const boost::json::object& object, std::string_view key);
/// `2 a100, 1 v100` of a map, or the number of any kind.
std::string gpus_at(const boost::json::object& object, std::string_view key);

/// Of a piece of output as the engine sends it; throws CommandError.
std::string bytes_of(const boost::json::object& piece);

/// Without a fraction, which is cut off.
std::string whole(double number);
/// 0 where it is not there or is no number.
double number_at(const boost::json::object& object, std::string_view key);
bool flag_at(const boost::json::object& object, std::string_view key);
/// Null where it is not there or is none.
const boost::json::object* object_at(const boost::json::object& object, std::string_view key);
const boost::json::array* array_at(const boost::json::object& object, std::string_view key);
/// The elements of a list that are objects; none where there is no list.  They live as long as that.
using Objects = std::vector<std::reference_wrapper<const boost::json::object>>;
Objects objects_in(const boost::json::array& list);
Objects objects_at(const boost::json::object& object, std::string_view key);
Objects objects_at(const boost::json::object&& object, std::string_view key) = delete;
/// The same of those that are texts.
std::vector<std::string> texts_at(const boost::json::object& object, std::string_view key);

/// A command as one would type it: words with other than plain letters in quotes.
std::string command_at(const boost::json::object& object, std::string_view key);

/// One line on standard output.
void print_json(const boost::json::value& value);
void print(std::string_view text);
/// The answer as it came, or the text; how a verb ends that has done what was asked: 0.
int show_answer(bool is_json, const boost::json::object& answer, std::string_view text);

// One object of the engine's JSON in full, for people: each key on a line, in the form that its
// name calls for.

/// A value on one line: times and durations, sizes, commands and amounts by the name of the key.
std::string value_on_a_line(std::string_view key, const boost::json::value& value);

/// The same, with times as short as they can be.
std::string value_in_a_table(std::string_view key, const boost::json::value& value);

/// A column of a table of objects.
struct ListColumn {
  std::string key, title;
  Table::Side side{Table::Side::Left};
  /// Its text of an object; without: as value_in_a_table has it.
  std::function<std::string(const boost::json::object& object, std::string_view key)> text{};
};
Table list_table(const std::vector<ListColumn>& columns, const Objects& objects);

/// Lists of objects (attempts, shapes) follow as tables.  Keys that are not there do not show.
/// `room`: letters on a line, beyond which sentences and rows break.
std::string describe(const boost::json::object& object, std::optional<std::size_t> room = {});

}  // namespace hpcbatch
