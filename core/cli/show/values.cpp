#include "cli/show/values.hpp"

#include "cli/parse/script.hpp"
#include "cli/process/process.hpp"
#include "cli/show/table.hpp"
#include "documents/json_numbers.hpp"
#include "documents/texts.hpp"
#include "model/quantities.hpp"

#include <hpcbatch/text.hpp>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>
#include <vector>

namespace hpcbatch {
namespace {

namespace json = boost::json;

std::string number_text(double value) {
  std::array<char, 32> text{};
  const int size = value == std::floor(value) && std::abs(value) < 1e15
                       ? std::snprintf(text.data(), text.size(), "%.0f", value)
                       : std::snprintf(text.data(), text.size(), "%g", value);
  return {text.data(), static_cast<std::size_t>(size)};
}

std::string scalar_text(const json::value& value) {
  if (value.is_string()) return std::string(value.get_string());
  if (value.is_bool()) return value.get_bool() ? "yes" : "no";
  if (value.is_double()) return number_text(value.get_double());
  if (value.is_null()) return "";
  return with_plain_numbers(json::serialize(value));
}

const json::value* find(const json::object& object, std::string_view key) {
  return object.if_contains({key.data(), key.size()});
}

bool is_number_at(const json::object& object, std::string_view key) {
  const json::value* value = find(object, key);
  return value != nullptr && value->is_number();
}

std::string quoted(const std::string& word) {
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%{}";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (const char letter : word) out += letter == '\'' ? "'\\''" : std::string(1, letter);
  return out + "'";
}

constexpr std::size_t kIndent = 2;

bool is_one_of(std::string_view key, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), key) != names.end();
}

bool is_list_of_objects(const json::value& value) {
  const json::array* array = value.if_array();
  return array != nullptr && !array->empty() && array->front().is_object();
}

/// `submitted_at` -> `submitted`, `cpu_s` -> `cpu time`, `peak_memory` -> `peak memory`.
std::string label_of(std::string_view key) {
  std::string label(key);
  if (key == "uptime_s") return "uptime";
  if (label.ends_with("_at"))
    label.resize(label.size() - 3);
  else if (label.ends_with("_s"))
    label.replace(label.size() - 2, 2, "_time");
  std::replace(label.begin(), label.end(), '_', ' ');
  return label;
}

std::string indented(const std::string& text) {
  std::string out;
  for (const std::string_view line : lines_of(text))
    out.append(kIndent, ' ').append(line).append("\n");
  return out;
}

/// `attempt 1, failure tool_failed, ...`: of rows that are wider than there is room.
std::string rows_in_words(const json::array& rows, std::size_t room) {
  std::string out;
  for (const json::object& row : objects_in(rows)) {
    std::string line;
    for (const auto& entry : row) {
      const std::string text = value_in_a_table(entry.key(), entry.value());
      if (text.empty()) continue;
      line += (line.empty() ? "" : ", ") + label_of(entry.key()) + " " + one_line(text);
    }
    out += std::string(kIndent, ' ') + wrapped(line, room, kIndent, 2 * kIndent) + "\n";
  }
  return out;
}

std::string table_of(const json::array& rows, std::optional<std::size_t> room) {
  std::vector<ListColumn> columns;
  for (const json::object& row : objects_in(rows)) {
    for (const auto& entry : row) {
      const std::string key(entry.key());
      const auto is_it = [&key](const ListColumn& column) { return column.key == key; };
      if (std::none_of(columns.begin(), columns.end(), is_it))
        columns.push_back({key, label_of(key)});
    }
  }
  const Table table = list_table(columns, objects_in(rows));
  return room && table.width() + kIndent > *room ? rows_in_words(rows, *room)
                                                 : indented(table.text());
}

/// Sentences and lists; a command or a path is copied by people, and stays whole.
bool may_break(std::string_view key, const json::value& value) {
  return value.is_object() || value.is_array()
             ? key != "command"
             : is_one_of(key, {"message", "reason", "description", "error", "summary"});
}

}  // namespace

std::string text_at(const json::object& object, std::string_view key) {
  const json::value* value = find(object, key);
  if (value == nullptr) return "";
  if (!value->is_array()) return scalar_text(*value);
  return joined(value->get_array(), ", ", scalar_text);
}

std::string time_at(const json::object& object, std::string_view key) {
  if (!is_number_at(object, key)) return "";
  const auto seconds = static_cast<std::time_t>(number_at(object, key));
  std::tm local{};
  if (::localtime_r(&seconds, &local) == nullptr) return "";
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local)};
}

std::string moment_at(const json::object& object, std::string_view key, std::time_t now) {
  if (!is_number_at(object, key)) return "";
  const auto seconds = static_cast<std::time_t>(number_at(object, key));
  std::tm local{}, today{};
  if (::localtime_r(&seconds, &local) == nullptr || ::localtime_r(&now, &today) == nullptr)
    return "";
  const bool is_today = local.tm_year == today.tm_year && local.tm_yday == today.tm_yday;
  std::array<char, 32> text{};
  return {text.data(),
          std::strftime(text.data(), text.size(), is_today ? "%H:%M:%S" : "%m-%d %H:%M", &local)};
}

std::string duration_at(const json::object& object, std::string_view key) {
  if (!is_number_at(object, key)) return "";
  return show_duration(
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(number_at(object, key))));
}

std::string size_at(const json::object& object, std::string_view key) {
  if (!is_number_at(object, key)) return "";
  return show_size(static_cast<std::uint64_t>(std::max(0.0, number_at(object, key))));
}

std::string gpus_at(const json::object& object, std::string_view key) {
  const json::object* kinds = object_at(object, key);
  if (kinds == nullptr) return text_at(object, key);
  return joined(*kinds, ", ", [](const auto& entry) {
    return scalar_text(entry.value()) + " " +
           (entry.key() == "any" ? "of any kind" : std::string(entry.key()));
  });
}

std::string bytes_of(const json::object& piece) {
  if (!piece.contains("base64")) return text_at(piece, "text");
  const auto bytes = decode_base64(text_at(piece, "base64"));
  if (!bytes) throw CommandError(kExitNoEngine, "the engine sent output that is not base64");
  return *bytes;
}

std::string whole(double number) {
  return std::to_string(static_cast<std::int64_t>(number));
}

double number_at(const json::object& object, std::string_view key) {
  return is_number_at(object, key) ? find(object, key)->to_number<double>() : 0;
}

bool flag_at(const json::object& object, std::string_view key) {
  const json::value* value = find(object, key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

const json::object* object_at(const json::object& object, std::string_view key) {
  const json::value* value = find(object, key);
  return value == nullptr ? nullptr : value->if_object();
}

const json::array* array_at(const json::object& object, std::string_view key) {
  const json::value* value = find(object, key);
  return value == nullptr ? nullptr : value->if_array();
}

Objects objects_in(const json::array& list) {
  Objects objects;
  for (const json::value& one : list) {
    if (one.is_object()) objects.emplace_back(one.get_object());
  }
  return objects;
}

Objects objects_at(const json::object& object, std::string_view key) {
  const json::array* list = array_at(object, key);
  return list == nullptr ? Objects{} : objects_in(*list);
}

std::vector<std::string> texts_at(const json::object& object, std::string_view key) {
  std::vector<std::string> texts;
  if (const json::array* list = array_at(object, key)) {
    for (const json::value& one : *list) {
      if (one.is_string()) texts.emplace_back(one.get_string());
    }
  }
  return texts;
}

std::string command_at(const json::object& object, std::string_view key) {
  const json::array* words = array_at(object, key);
  if (words == nullptr) return text_at(object, key);
  std::vector<std::string> command;
  for (const json::value& word : *words) command.push_back(scalar_text(word));
  return joined(command_of_script(std::move(command)), " ", quoted);
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void print_json(const json::value& value) {
  print(with_plain_numbers(json::serialize(value)) + "\n");
}

int show_answer(bool is_json, const json::object& answer, std::string_view text) {
  if (is_json)
    print_json(answer);
  else
    print(text);
  return 0;
}

std::string value_on_a_line(std::string_view key, const json::value& value);

/// What of the needs is none that its user gave.
std::string guess_on_a_line(const json::object& guess) {
  std::string of;
  const auto add = [&](const std::string& one) { of += (of.empty() ? "" : ", ") + one; };
  if (guess.contains("memory")) {
    const bool is_asked = number_at(guess, "memory") > 0;
    add(is_asked ? "memory (" + size_at(guess, "memory") + " were asked for)" : "memory");
  }
  if (guess.contains("gpus")) add("gpus (" + text_at(guess, "gpus") + " were asked for)");
  if (guess.contains("time")) add("time");
  return of + " from " + text_at(guess, "runs") + " runs of its kind";
}

/// `cpus 4, gpus 1 of any kind, or cpus 16`: of needs with several ways each, with what they have in
/// common behind it.
std::string ways_on_a_line(const json::object& needs) {
  const std::string out =
      joined(needs.at("one_of").as_array(), ", or ",
             [](const json::value& way) { return value_on_a_line("way", way); });
  json::object common = needs;
  for (const json::value& way : needs.at("one_of").as_array())
    for (const auto& entry : way.as_object()) common.erase(entry.key());
  common.erase("one_of");
  const std::string rest = value_on_a_line("common", common);
  return out + (rest.empty() ? "" : "; " + rest);
}

std::string object_on_a_line(std::string_view key, const json::object& object) {
  if (key == "guess") return guess_on_a_line(object);
  const json::array* ways = array_at(object, "one_of");
  if (ways != nullptr && is_list_of_objects(*ways)) return ways_on_a_line(object);
  std::string out;
  for (const auto& entry : object) {
    const std::string text = value_on_a_line(std::string(entry.key()), entry.value());
    if (!text.empty())
      out += (out.empty() ? "" : ", ") + label_of(std::string(entry.key())) + " " + text;
  }
  return out;
}

std::string value_on_a_line(std::string_view key, const json::value& value) {
  const std::string name(key);
  const json::object one{{name, value}};
  if (value.is_number()) {
    if (key.ends_with("_at") || is_one_of(key, {"until", "expected_start", "expected_start_90"}))
      return time_at(one, key);
    if (key.ends_with("_s") || is_one_of(key, {"time", "walltime", "expected_wait"}))
      return duration_at(one, key);
    if (is_one_of(key, {"memory", "disk", "peak_memory", "memory_median", "memory_95", "read",
                        "written", "gpu_memory", "gpu_memory_median", "gpu_memory_95",
                        "read_median", "read_95", "written_median", "written_95"}))
      return size_at(one, key);
  }
  if (key == "command") return command_at(one, key);
  if (key == "gpus") return gpus_at(one, key);
  if (value.is_object()) return object_on_a_line(key, value.get_object());
  return text_at(one, key);
}

std::string value_in_a_table(std::string_view key, const json::value& value) {
  if (!value.is_number() || !(key.ends_with("_at") || key == "until"))
    return value_on_a_line(key, value);
  return moment_at({{std::string(key), value}}, key, std::time(nullptr));
}

std::string soon_at(const json::object& object, std::string_view key) {
  return moment_at(object, key, std::time(nullptr));
}

Table list_table(const std::vector<ListColumn>& columns, const Objects& objects) {
  std::vector<Table::Column> titles;
  titles.reserve(columns.size());
  for (const ListColumn& column : columns) titles.push_back({column.title, column.side});
  Table table(std::move(titles));
  for (const json::object& object : objects) {
    std::vector<std::string> row;
    for (const ListColumn& column : columns) {
      const json::value* value = find(object, column.key);
      row.push_back(column.text        ? column.text(object, column.key)
                    : value == nullptr ? ""
                                       : value_in_a_table(column.key, *value));
    }
    table.add(std::move(row));
  }
  return table;
}

std::string describe(const json::object& object, std::optional<std::size_t> room) {
  std::vector<NameAndValue> pairs;
  std::string tables;
  for (const auto& entry : object) {
    const std::string key(entry.key());
    // Both are what `state` says.
    if (key == "ended" && entry.value().is_bool()) continue;
    if (key == "failure" && text_at(object, key) == "ok") continue;
    if (is_list_of_objects(entry.value())) {
      tables += label_of(key) + ":\n" + table_of(entry.value().get_array(), room);
    } else {
      pairs.push_back(
          {label_of(key), value_on_a_line(key, entry.value()), may_break(key, entry.value())});
    }
  }
  return aligned_pairs(pairs, room) + tables;
}

}  // namespace hpcbatch
