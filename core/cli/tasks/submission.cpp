#include "cli/tasks/submission.hpp"

#include "cli/process/process.hpp"
#include "cli/show/terminal.hpp"
#include "cli/tasks/items.hpp"
#include "documents/task_values.hpp"
#include "documents/texts.hpp"
#include "model/index_set.hpp"
#include "model/item.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>
#include <string_view>
#include <system_error>
#include <vector>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// Words that people read are UTF-8; better said here than by the engine.  Arguments, items, paths
/// and values of variables are the kernel's, and any bytes.
std::string_view checked(const std::string& text, std::string_view what) {
  if (find_invalid_utf8(text)) {
    throw CommandError(kExitUsage,
                       std::string(what) + " '" + show_text(text) + "' is not valid UTF-8");
  }
  return text;
}

class TaskWriter {
 public:
  TaskWriter(const std::string& callers, const WorkOptions& work, const Items& items)
      : work_(work), callers_(as_it_stands(callers)), items_(items), directory_(callers_) {
    if (work.says("directory")) directory_ = absolute(callers_, work.one("directory"));
  }

  json::value value_of(const TaskKey& key, const std::vector<std::string>& texts) const {
    using Type = TaskKey::Type;
    switch (key.type) {
      case Type::Folder:
        return json::string(directory_);
      case Type::Stream:
        if (texts.back() == "none") return "/dev/null";
        [[fallthrough]];
      case Type::File:
        // From the directory that the task runs in.
        return json::string(absolute(directory_, texts.back()));
      case Type::Files:
      case Type::Variables:
      case Type::Values:
        return map(key);
      default:
        for (const std::string& text : texts) checked(text, key.name);
        return task_value(key, texts);
    }
  }

 private:
  std::string absolute(const std::string& from, const std::string& path) const {
    return absolute_path(from, path, items_);
  }
  json::object map(const TaskKey& key) const {
    const bool are_paths = key.type == TaskKey::Type::Files;
    json::object object;
    for (const auto& [name, value] : work_.pairs(key.name)) {
      const std::string text = are_paths ? absolute(callers_, value) : value;
      json::value* there = object.if_contains(checked(name, key.name));
      if (there == nullptr) {
        object[name] = text;
      } else if (!are_paths || key.name == "outputs") {
        *there = text;  // the last one holds
      } else if (there->is_array()) {
        there->get_array().emplace_back(text);
      } else {
        *there = json::array{*there, text};
      }
    }
    return object;
  }

  const WorkOptions& work_;
  std::string callers_;  ///< a name as those of the task are
  const Items& items_;
  std::string directory_;
};

/// Of the caller's environment what any program needs, and those that are named.
json::object exported_environment(const std::vector<std::string>& names) {
  json::object variables;
  for (const auto& [name, value] : handed_on(own_environment())) {
    if (is_of_any_program(name) || std::find(names.begin(), names.end(), name) != names.end())
      variables[name] = value;
  }
  return variables;
}

/// What asks for a second column where the items have one.
std::string stray_column(const WorkOptions& work, const Items& items) {
  if (items.items.empty() || !items.items.front().is_string() || !items.columns.empty()) return "";
  std::vector<std::string> texts = work.command;
  for (const char* key : {"stdin", "stdout", "stderr", "directory", "name"})
    texts.push_back(work.one(key));
  for (const std::string& text : texts) {
    for (const std::string_view name : columns_asked_for(text)) {
      if (name != "1" && name.find_first_not_of("0123456789") == std::string_view::npos)
        return "{" + std::string(name) + "}";
    }
  }
  return "";
}

/// A shell hands a pattern that no file matches on as it stands.
void refuse_pattern(const std::vector<ItemSource>& sources) {
  for (const ItemSource& source : sources) {
    if (source.words.size() != 1) continue;
    const std::string& word = source.words.front();
    const bool is_pattern = word.find_first_of("*?") != std::string::npos &&
                            word.find_first_of("./_") != std::string::npos &&
                            word.find("://") == std::string::npos &&
                            word.find(' ') == std::string::npos;
    std::error_code error;
    if (!is_pattern || std::filesystem::exists(word, error)) continue;
    throw CommandError(kExitUsage,
                       "no file matches '" + show_text(word) +
                           "', which the shell has handed on as it stands; a text that is meant so "
                           "is a line of a list: --each FILE");
  }
}

/// What would run, and not as its user means it.
void refuse_what_is_not_meant(const WorkOptions& work, const Items& items) {
  if (items.items.empty() || !items.items.front().is_string()) return;
  const std::string first(items.items.front().get_string());
  const std::string place = stray_column(work, items);
  const std::size_t separator = first.find_first_of("\t,;");
  if (!place.empty() && separator != std::string::npos) {
    throw CommandError(
        kExitUsage,
        "'" + place + "' stands for a column, and the items have one: say --columns " +
            (first[separator] == '\t' ? "tab" : "'" + first.substr(separator, 1) + "'") +
            "; a text that is meant as it stands belongs into a script");
  }
  std::error_code error;
  if (work.command.size() == 1 && work.command.front() == "{}" &&
      first.find(' ') != std::string::npos && !std::filesystem::exists(first, error)) {
    throw CommandError(kExitUsage,
                       "each item would be the name of a program, with all its spaces; "
                       "of lines that are commands say: -- sh -c 'eval \"$1\"' sh {}");
  }
}

/// As `{sample}`, and not `${sample}` or `{ echo; }` of a shell.
bool has_name_in_braces(const std::string& word) {
  const auto is_of_name = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
  };
  for (std::size_t at = word.find('{'); at != std::string::npos; at = word.find('{', at + 1)) {
    const std::size_t end = word.find('}', at);
    const bool is_shells = at > 0 && word[at - 1] == '$';
    if (end != std::string::npos && end > at + 1 && !is_shells &&
        std::all_of(word.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                    word.begin() + static_cast<std::ptrdiff_t>(end), is_of_name))
      return true;
  }
  return false;
}

}  // namespace

void refuse_repeated(const WorkOptions& work, int exit_code) {
  for (const auto& [flag, values] :
       {std::pair{"--param", work.pairs("parameters")}, {"--output", work.pairs("outputs")}}) {
    std::map<std::string, std::string> seen;
    for (const auto& [name, value] : values) {
      const auto [at, is_new] = seen.emplace(name, value);
      if (!is_new)
        throw CommandError(exit_code, std::string(flag) + " " + show_text(name) +
                                          " is said twice, as '" + show_text(at->second) +
                                          "' and as '" + show_text(value) + "'; leave one out");
    }
  }
}

void tell_missing_folders(const WorkOptions& work, const std::string& directory) {
  for (const auto& [name, path] : work.pairs("outputs")) {
    // What an item or a task fills in is known later.
    if (path.find('{') != std::string::npos) continue;
    const auto folder = (std::filesystem::path(directory) / path).lexically_normal().parent_path();
    std::error_code error;
    if (std::filesystem::exists(folder, error) || error) continue;
    say("note that there is no folder " + show_text(folder.string(), 200) +
        " yet, into which the output '" + show_text(name) +
        "' goes: it must be there when the task ends");
  }
}

std::string absolute_path(const std::string& from, const std::string& path, const Items& items) {
  // A shell does not expand the ~ of --stdout=~/x, and nothing expands that of a file of tasks: the task
  // would make a folder called ~, whose removal by that name removes the home.
  if (path == "~" || path.starts_with("~/"))
    throw CommandError(kExitUsage,
                       "'" + show_text(path, 200) +
                           "': ~ is not read as your home here; write the whole path, or ./~ "
                           "for a folder of that name");
  const auto is_absolute = [&](const json::value& item) {
    return with_item(path, item_of(item, items.columns)).starts_with('/');
  };
  if (begins_with_item(path) && std::any_of(items.items.begin(), items.items.end(), is_absolute))
    return path;
  const std::filesystem::path whole = std::filesystem::path(from) / path;
  // It would make one slash of the two that stand for an item's folder.
  return (path.find("//}") == std::string::npos ? whole.lexically_normal() : whole).string();
}

json::object task_of(const WorkOptions& work, const std::string& directory, const Items& items) {
  const TaskWriter writer(directory, work, items);
  json::object task;
  if (!work.command.empty())
    task["command"] = json::array(work.command.begin(), work.command.end());
  for (const auto& [name, texts] : work.said)
    task[name] = writer.value_of(*find_task_key(name), texts);
  if (work.exported) task["environment"] = exported_environment(*work.exported);
  if (!items.items.empty()) task["items"] = items.items;
  for (const std::string& column : items.columns) checked(column, "columns");
  if (!items.columns.empty())
    task["columns"] = json::array(items.columns.begin(), items.columns.end());
  if (!items.texts.empty())
    task["item_texts"] = json::array(items.texts.begin(), items.texts.end());
  return task;
}

json::object submission_of(json::array tasks, const Surroundings& around, const std::string& client,
                           const std::string& key) {
  json::object request;
  request["client"] = client;
  if (!key.empty()) request["key"] = checked(key, "key");
  request["directory"] = around.directory;
  json::object environment;
  environment.reserve(around.environment.size());
  for (const auto& [name, value] : around.environment) environment[name] = value;
  request["environment"] = std::move(environment);
  char mask[8];
  std::snprintf(mask, sizeof mask, "%04o", around.umask);
  request["umask"] = mask;
  if (around.within)
    request["within"] = {{"task", around.within->task}, {"pilot", around.within->pilot}};
  request["tasks"] = std::move(tasks);
  return request;
}

std::string random_key() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::random_device random;
  std::string key = "once-";
  for (int word = 0; word < 4; ++word) {
    unsigned value = random();
    for (int digit = 0; digit < 8; ++digit, value >>= 4) key += kDigits[value & 15];
  }
  return key;
}

std::uint64_t failures_allowed(const HaltOption& halt, std::uint64_t tasks) {
  if (!halt.share) return halt.failures.value_or(0);
  // With that share of them it is over, and with one in any case.
  const double at = std::ceil(*halt.share * static_cast<double>(tasks));
  return static_cast<std::uint64_t>(std::max(at, 1.0)) - 1;
}

boost::json::object task_of_many(const WorkOptions& work, const ManyOptions& many,
                                 const std::string& directory, const Interrupt& interrupt) {
  Items items;
  if (!many.items.sources.empty()) items = read_items(many.items, interrupt);
  refuse_pattern(many.items.sources);
  refuse_what_is_not_meant(work, items);
  boost::json::object task = task_of(work, directory, items);
  std::uint64_t tasks = std::max<std::size_t>(items.items.size(), 1);
  if (many.array) {
    task["array"] = many.array->indices;
    if (const auto indices = parse_index_set(many.array->indices)) tasks = indices->size();
  }
  const std::uint32_t most =
      many.max_running == 0 && many.array ? many.array->max_running : many.max_running;
  if (most > 0) task["max_running"] = most;
  bound_failures(task, many, tasks);
  return task;
}

void bound_failures(boost::json::object& task, const ManyOptions& many, std::uint64_t tasks) {
  if (!many.halt) return;
  task["max_failures"] = failures_allowed(*many.halt, tasks);
  if (many.halt->ends_running) task["halt_running"] = true;
}

std::string doubt_of(const WorkOptions& work, const ManyOptions& many,
                     const boost::json::object& task) {
  const auto any_word = [&](auto&& is) {
    return std::any_of(work.command.begin(), work.command.end(), is);
  };
  const auto holds = [](const char* text) {
    return [text](const std::string& word) { return word.find(text) != std::string::npos; };
  };
  if (work.command.empty()) return "";
  if (many.items.sources.empty()) {
    return any_word(holds("{}")) && many.array
               ? "the command has {}, which stands for items; an index of --array is "
                 "$HPCBATCH_TASK_INDEX"
               : "";
  }
  const boost::json::array* items = task.at("items").if_array();
  if (items == nullptr || items->empty() || any_word(holds("HPCBATCH_"))) return "";
  std::vector<std::string> columns;
  if (const auto* names = task.if_contains("columns")) {
    for (const auto& name : names->as_array()) columns.emplace_back(name.as_string());
  }
  Items all;
  all.items.push_back(items->front());
  all.columns = columns;
  if (const std::string place = stray_column(work, all); !place.empty())
    return place +
           " stays as it is: the items have one column, and --columns says what separates more";
  const Item first = item_of(items->front(), columns);
  const auto has_place = [&](const std::string& word) { return with_item(word, first, 1) != word; };
  bool is_elsewhere = work.says("inputs") || work.says("outputs");
  for (const char* key : {"stdin", "stdout", "stderr", "directory"})
    is_elsewhere = is_elsewhere || has_place(work.one(key));
  if (any_word(has_place) || is_elsewhere) return "";
  // What no column is called is refused with a sentence of its own.
  if (!columns.empty() && any_word(has_name_in_braces)) return "";
  return "the command has no {}: each task has its item in $HPCBATCH_ITEM alone";
}

void tell_doubt(const WorkOptions& work, const ManyOptions& many, const boost::json::object& task) {
  if (const std::string doubt = doubt_of(work, many, task); !doubt.empty()) say(doubt);
}

}  // namespace hpcbatch
