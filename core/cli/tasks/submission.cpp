#include "cli/tasks/submission.hpp"

#include "cli/process/exit.hpp"
#include "cli/tasks/items.hpp"
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

json::value number(double value) {
  if (value == std::floor(value) && value < 1e15) return static_cast<std::int64_t>(value);
  return value;
}

class TaskWriter {
 public:
  TaskWriter(const std::string& callers, const WorkOptions& work, const Items& items)
      : callers_(callers),
        items_(items),
        directory_(work.directory.empty() ? callers : absolute(callers, work.directory)) {}

  void text(const char* key, const std::string& value) {
    if (!value.empty()) task_[key] = checked(value, key);
  }
  /// Paths of the task itself: from the directory that it runs in.
  void path(const char* key, const std::string& value) {
    if (!value.empty()) task_[key] = absolute(directory_, value);
  }
  /// What is printed there may also go nowhere.
  void stream(const char* key, const std::string& value) {
    path(key, value == "none" ? "/dev/null" : value);
  }
  void list(const char* key, const std::vector<std::string>& values) {
    for (const std::string& value : values) checked(value, key);
    bytes(key, values);
  }
  void bytes(const char* key, const std::vector<std::string>& values) {
    if (!values.empty()) task_[key] = json::array(values.begin(), values.end());
  }
  void map(const char* key, const Assignments& values, bool are_paths) {
    if (values.empty()) return;
    json::object object;
    for (const auto& [name, value] : values) {
      const std::string text = are_paths ? absolute(callers_, value) : value;
      json::value* there = object.if_contains(checked(name, key));
      if (there == nullptr) {
        object[name] = text;
      } else if (!are_paths || key == std::string_view("outputs")) {
        *there = text;  // the last one holds
      } else if (there->is_array()) {
        there->get_array().emplace_back(text);
      } else {
        *there = json::array{*there, text};
      }
    }
    task_[key] = std::move(object);
  }
  void directory(const WorkOptions& work) {
    if (!work.directory.empty()) task_["directory"] = directory_;
  }
  template <class Value>
  void value(const char* key, Value value) {
    task_[key] = std::move(value);
  }
  json::object take() { return std::move(task_); }

 private:
  std::string absolute(const std::string& from, const std::string& path) const {
    return absolute_path(from, path, items_);
  }

  const std::string& callers_;
  const Items& items_;
  std::string directory_;
  json::object task_;
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

/// Of a task or of one way to run it.
template <class Asked>
json::object gpu_terms(const Asked& work) {
  json::object terms;
  if (work.gpus) terms["count"] = number(*work.gpus);
  if (!work.gpu_kinds.empty()) {
    terms["kind"] = checked(work.gpu_kinds.front().first, "gpus");
    terms["count"] = number(work.gpu_kinds.front().second);
  }
  if (!work.gpu_memory.empty()) terms["memory"] = work.gpu_memory;
  if (!work.gpu_capability.empty()) terms["capability"] = work.gpu_capability;
  return terms;
}

/// What is asked of GPUs; null: nothing.
template <class Asked>
json::value gpus_of(const Asked& work) {
  if (!work.gpu_memory.empty() || !work.gpu_capability.empty()) return gpu_terms(work);
  if (work.gpus) return number(*work.gpus);
  if (work.gpu_kinds.empty()) return nullptr;
  json::object kinds;
  for (const auto& [kind, count] : work.gpu_kinds) kinds[checked(kind, "gpus")] = number(count);
  return kinds;
}

json::array ways_of(const std::vector<WayOption>& ways) {
  json::array all;
  for (const WayOption& way : ways) {
    json::object one;
    if (way.cpus) one["cpus"] = number(*way.cpus);
    if (!way.memory.empty()) one["memory"] = way.memory;
    if (!way.disk.empty()) one["disk"] = way.disk;
    if (json::value gpus = gpus_of(way); !gpus.is_null()) one["gpus"] = std::move(gpus);
    all.push_back(std::move(one));
  }
  return all;
}

void write_needs(TaskWriter& task, const WorkOptions& work) {
  if (work.cpus) task.value("cpus", number(*work.cpus));
  if (work.all_cpus) task.value("cpus", "all");
  task.text("memory", work.memory);
  task.text("disk", work.disk);
  task.text("output_limit", work.output_limit);
  task.text("estimate", work.estimate);
  task.text("cpu_bind", work.cpu_bind);
  if (work.threads_per_core) task.value("threads_per_core", *work.threads_per_core);
  task.text("time", work.time);
  if (json::value gpus = gpus_of(work); !gpus.is_null()) task.value("gpus", std::move(gpus));
  if (!work.one_of.empty()) task.value("one_of", ways_of(work.one_of));
  task.text("site", work.site);
  task.list("not_sites", work.not_sites);
  task.list("tags", work.tags);
}

}  // namespace

void refuse_repeated(const WorkOptions& work, int exit_code) {
  for (const auto& [flag, values] :
       {std::pair{"--param", &work.parameters}, std::pair{"--output", &work.outputs}}) {
    std::map<std::string, std::string> seen;
    for (const auto& [name, value] : *values) {
      const auto [at, is_new] = seen.emplace(name, value);
      if (!is_new)
        throw CommandError(exit_code, std::string(flag) + " " + show_text(name) +
                                          " is said twice, as '" + show_text(at->second) +
                                          "' and as '" + show_text(value) + "'; leave one out");
    }
  }
}

void tell_missing_folders(const WorkOptions& work, const std::string& directory) {
  for (const auto& [name, path] : work.outputs) {
    // What an item or a task fills in is known later.
    if (path.find('{') != std::string::npos) continue;
    const auto folder = (std::filesystem::path(directory) / path).lexically_normal().parent_path();
    std::error_code error;
    if (std::filesystem::exists(folder, error) || error) continue;
    std::fprintf(stderr,
                 "hpcbatch: note that there is no folder %s yet, into which the output '%s' goes: "
                 "it must be there when the task ends\n",
                 show_text(folder.string(), 200).c_str(), show_text(name).c_str());
  }
}

std::string absolute_path(const std::string& from, const std::string& path, const Items& items) {
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
  TaskWriter task(directory, work, items);
  task.bytes("command", work.command);
  task.text("tool", work.tool);
  task.map("parameters", work.parameters, false);
  task.map("inputs", work.inputs, true);
  task.map("outputs", work.outputs, true);
  write_needs(task, work);
  task.directory(work);
  if (work.exported) task.value("environment", exported_environment(*work.exported));
  task.map("env", work.env, false);
  task.path("stdin", work.standard_input);
  task.stream("stdout", work.standard_output);
  task.stream("stderr", work.standard_error);
  task.text("container", work.container);
  task.text("name", work.name);
  task.text("kind", work.kind);
  task.list("after", work.after);
  task.list("after_any", work.after_any);
  task.list("after_each", work.after_each);
  if (work.retries) task.value("retries", *work.retries);
  if (work.priority) task.value("priority", *work.priority);
  if (work.hold) task.value("hold", true);
  if (work.numbered) task.value("numbered", true);
  if (!items.items.empty()) task.value("items", items.items);
  task.list("columns", items.columns);
  task.bytes("item_texts", items.texts);
  return task.take();
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

namespace {

/// What asks for a second column where the items have one.
std::string stray_column(const WorkOptions& work, const Items& items) {
  if (items.items.empty() || !items.items.front().is_string() || !items.columns.empty()) return "";
  std::vector<std::string> texts = work.command;
  texts.insert(texts.end(), {work.standard_input, work.standard_output, work.standard_error,
                             work.directory, work.name});
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

}  // namespace

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

namespace {

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

void tell_doubt(const std::string& doubt) {
  if (!doubt.empty()) std::fprintf(stderr, "hpcbatch: %s\n", doubt.c_str());
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
  const bool is_elsewhere = has_place(work.standard_input) || has_place(work.standard_output) ||
                            has_place(work.standard_error) || has_place(work.directory) ||
                            !work.inputs.empty() || !work.outputs.empty();
  if (any_word(has_place) || is_elsewhere) return "";
  // What no column is called is refused with a sentence of its own.
  if (!columns.empty() && any_word(has_name_in_braces)) return "";
  return "the command has no {}: each task has its item in $HPCBATCH_ITEM alone";
}

}  // namespace hpcbatch
