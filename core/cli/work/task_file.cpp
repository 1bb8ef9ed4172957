#include "cli/work/task_file.hpp"

#include "cli/process/exit.hpp"
#include "cli/work/json_fields.hpp"
#include "documents/spelling.hpp"
#include "documents/toml.hpp"
#include "documents/view.hpp"
#include "documents/yaml.hpp"
#include "posix/fd.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// A file of a million tasks is a normal thing; one of a thousand times that is a mistake.
constexpr DocumentLimits kLimits{std::size_t{256} << 20, 20'000'000, 32};

/// The keys of a task (docs/api.md), by the JSON type that a YAML scalar becomes.
const std::vector<std::string> kNumbers{"cpus",         "nodes",   "max_running",
                                        "max_failures", "retries", "priority"};
const std::vector<std::string> kBooleans{"hold", "stream_input", "halt_running"};
const std::vector<std::string> kOthers{
    "command",   "tool",       "parameters", "inputs",      "outputs",     "memory",
    "disk",      "time",       "gpus",       "resources",   "site",        "tags",
    "directory", "env",        "stdin",      "environment", "array",       "items",
    "columns",   "container",  "stdout",     "stderr",      "name",        "after",
    "after_any", "after_each", "not_sites",  "shared",      "output_limit"};

bool is_named_in(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_keys(const json::object& task, const std::string& file, int line) {
  for (const auto& entry : task) {
    const std::string key(entry.key());
    if (is_named_in(kNumbers, key) || is_named_in(kBooleans, key) || is_named_in(kOthers, key))
      continue;
    std::vector<std::string> known = kOthers;
    known.insert(known.end(), kNumbers.begin(), kNumbers.end());
    known.insert(known.end(), kBooleans.begin(), kBooleans.end());
    const std::string near = nearest_spelling(key, known);
    throw DocumentError(
        file, line,
        "a task has no key '" + key + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
  }
}

/// Numbers in it stay the letters of the author.
bool is_text_key(std::string_view key) {
  const std::string name(key);
  return is_named_in(kOthers, name) && name != "gpus" && name != "resources";
}

json::value number_of(const View& view) {
  const double value =
      view.number(std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max());
  if (value == static_cast<double>(static_cast<std::int64_t>(value)))
    return static_cast<std::int64_t>(value);
  return value;
}

/// Texts stay the letters that the author wrote: `010` is not 8.
json::value plain(const Node& node, const std::string& file) {
  switch (node.kind) {
    case Node::Kind::Null:
      return "";
    case Node::Kind::Scalar:
      return json::string(node.text);
    case Node::Kind::List: {
      json::array array;
      for (const Node& item : node.items) array.push_back(plain(item, file));
      return array;
    }
    case Node::Kind::Map: {
      json::object object;
      for (const Field& field : node.fields) object[field.name] = plain(field.value, file);
      return object;
    }
  }
  return nullptr;
}

json::value number_or_map(const View& view) {
  if (view.node().kind != Node::Kind::Map) return number_of(view);
  json::object amounts;
  for (const Field& field : view.node().fields) {
    amounts[field.name] = number_of(View(field.value, view.file(), field.name));
  }
  return amounts;
}

json::object task_of(const Node& node, const std::string& file) {
  if (node.kind != Node::Kind::Map)
    View(node, file, "task").expected("a map with `command` or `tool`");
  json::object task;
  for (const Field& field : node.fields) {
    const View view(field.value, file, field.name);
    check_keys({{field.name, nullptr}}, file, field.line);
    if (view.is_null()) continue;
    if (is_named_in(kNumbers, field.name)) {
      task[field.name] = number_of(view);
    } else if (is_named_in(kBooleans, field.name)) {
      task[field.name] = view.boolean();
    } else if (field.name == "gpus" || field.name == "resources") {
      task[field.name] = number_or_map(view);
    } else {
      task[field.name] = plain(field.value, file);
    }
  }
  if (!task.contains("command") && !task.contains("tool")) {
    throw DocumentError(file, node.line, "a task needs `command` or `tool`");
  }
  return task;
}

bool ends_with_any(const std::string& name, std::initializer_list<const char*> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](const char* ending) { return name.ends_with(ending); });
}

}  // namespace

std::string read_input(const std::string& file, const Interrupt& interrupt) {
  Fd opened;
  // A FIFO without a writer is waited for below, where that can be interrupted.
  if (file != "-") opened = Fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file != "-" && !opened) {
    throw CommandError(kExitUsage, "cannot read " + file + ": " + std::strerror(errno));
  }
  const int source = file == "-" ? STDIN_FILENO : opened.get();
  std::string text;
  char piece[64 * 1024];
  for (;;) {
    // The signals that would end a read are blocked: they come through the interrupt's descriptor.
    pollfd waits[] = {{interrupt.descriptor(), POLLIN, 0}, {source, POLLIN, 0}};
    if (::poll(waits, 2, -1) > 0 && waits[0].revents != 0) throw InterruptedByUser{};
    const ssize_t size = ::read(source, piece, sizeof piece);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size < 0) {
      throw CommandError(kExitUsage, "cannot read " + (file == "-" ? "standard input" : file) +
                                         ": " + std::strerror(errno));
    }
    if (size == 0) return text;
    text.append(piece, static_cast<std::size_t>(size));
    if (text.size() > kLimits.bytes) {
      throw CommandError(kExitUsage,
                         "cannot read " + file + ": it is larger than 256 MB; submit it in parts");
    }
  }
}

json::array tasks_of_json_lines(const std::string& text, const std::string& file) {
  json::array tasks;
  int line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view content(text.data() + begin, end - begin);
    begin = end + 1;
    ++line;
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    boost::system::error_code error;
    const std::string letters = with_numbers_as_texts(content, is_text_key);
    json::value task = json::parse(letters, error);
    if (error) throw DocumentError(file, line, "this line is not valid JSON: " + error.message());
    if (!task.is_object())
      throw DocumentError(file, line,
                          "a task must be a JSON object, like {\"command\": [\"true\"]}");
    check_keys(task.get_object(), file, line);
    if (!task.get_object().contains("command") && !task.get_object().contains("tool")) {
      throw DocumentError(file, line, "a task needs `command` or `tool`");
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

namespace {

json::array tasks_of_document(const Node& document, const std::string& file) {
  const Node* list = &document;
  if (document.kind == Node::Kind::Map && document.fields.empty()) return {};
  if (document.kind == Node::Kind::Map) {
    const View view(document, file, "file");
    MapView map(view);
    const View tasks = map.get("tasks");
    map.finish();
    list = &tasks.node();
  }
  if (list->kind != Node::Kind::List) View(*list, file, "tasks").expected("a list of tasks");
  json::array tasks;
  for (const Node& node : list->items) tasks.push_back(task_of(node, file));
  return tasks;
}

}  // namespace

json::array tasks_of_yaml(const std::string& text, const std::string& file) {
  return tasks_of_document(parse_yaml(text, file, kLimits), file);
}

json::array tasks_of_toml(const std::string& text, const std::string& file) {
  return tasks_of_document(parse_toml(text, file, kLimits), file);
}

json::array read_tasks(const std::string& file, const Interrupt& interrupt) {
  const bool is_yaml = ends_with_any(file, {".yaml", ".yml"});
  const bool is_toml = ends_with_any(file, {".toml"});
  if (!is_yaml && !is_toml && file != "-" && !ends_with_any(file, {".jsonl", ".ndjson", ".json"})) {
    throw CommandError(kExitUsage,
                       "cannot tell what " + file + " is: name it .yaml, .toml or .jsonl");
  }
  std::string text = read_input(file, interrupt);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  const std::string name = file == "-" ? "standard input" : file;
  json::array tasks = is_yaml   ? tasks_of_yaml(text, name)
                      : is_toml ? tasks_of_toml(text, name)
                                : tasks_of_json_lines(text, name);
  if (tasks.empty()) throw CommandError(kExitUsage, name + " holds no tasks");
  return tasks;
}

}  // namespace hpcbatch
