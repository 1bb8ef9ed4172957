#include "cli/tasks/submission.hpp"

#include "cli/parse/spelled.hpp"
#include "cli/process/process.hpp"
#include "cli/show/values.hpp"
#include "cli/tasks/items.hpp"
#include "documents/json_numbers.hpp"
#include "documents/task_values.hpp"
#include "documents/texts.hpp"
#include "documents/view.hpp"
#include "documents/yaml.hpp"
#include "hardware/gpu_kind.hpp"
#include "posix/files.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// A file of a million tasks is a normal thing; one of a thousand times that is a mistake.
constexpr DocumentLimits kLimits{std::size_t{256} << 20, 20'000'000, 32};

[[noreturn]] void refuse(const std::string& file, int line, const std::string& sentence) {
  throw DocumentError(file, line, sentence);
}

const TaskKey& key_named(const std::string& name, const std::string& file, int line) {
  const TaskKey* key = find_task_key(name);
  if (key == nullptr) refuse(file, line, "a task has no key '" + name + "'" + task_key_hint(name));
  return *key;
}

/// Numbers in it stay the letters of the author.
bool is_text_key(std::string_view name) {
  const TaskKey* key = find_task_key(name);
  return key != nullptr && keeps_letters(key->type);
}

/// The text that a list of words would have been, for the refusal of one that is no list.
std::string as_list(const std::string& text) {
  std::string list;
  std::istringstream words(text);
  for (std::string word; words >> word;) list += (list.empty() ? "[" : ", ") + word;
  return list + "]";
}

void check_command(const json::value& value, const std::string& file, int line) {
  if (value.is_array()) {
    const auto* const none = std::find(value.get_array().begin(), value.get_array().end(), nullptr);
    if (none != value.get_array().end())
      refuse(file, line,
             "word " + std::to_string(none - value.get_array().begin() + 1) +
                 " of `command` is null; write \"\" for an empty word, or quotation marks around ~ "
                 "and null");
    const bool has_others = std::any_of(value.get_array().begin(), value.get_array().end(),
                                        [](const json::value& word) { return !word.is_string(); });
    if (has_others)
      refuse(file, line,
             "the words of `command` are texts; what begins with { or [ stands in quotation marks, "
             "as [echo, \"{}\"]");
    return;
  }
  const std::string text = value.is_string() ? std::string(value.get_string()) : "";
  refuse(file, line,
         "`command` is a list of words, as " + (text.empty() ? "[echo, hello]" : as_list(text)) +
             "; for a shell that reads a text write [sh, -c, \"" + (text.empty() ? "TEXT" : text) +
             "\"]");
}

void check_items(const json::value& value, const std::string& file, int line) {
  if (value.is_array()) return;
  refuse(
      file, line,
      "`items` is a list, as [a.wav, b.wav]; for the lines of a file use `hpcbatch submit --each "
      "FILE`");
}

/// `1-100%20` is both indices and how many may run at once.
void split_array(json::object& task, const std::string& file, int line) {
  const json::value& value = task.at("array");
  if (!value.is_string())
    refuse(file, line, "`array` is a text, as 1-100%20; a list of things to work on is `items`");
  try {
    const ArrayOption array = parse_array(std::string_view(value.get_string()));
    task["array"] = array.indices;
    if (array.max_running > 0 && !task.contains("max_running"))
      task["max_running"] = array.max_running;
  } catch (const std::invalid_argument& error) {
    refuse(file, line, std::string("`array`: ") + error.what());
  }
}

/// One value as it goes to the engine, which knows no lines.
json::value checked_value(json::value value, const TaskKey& key, const std::string& file,
                          int line) {
  if (key.name == "command") check_command(value, file, line);
  if (key.name == "items") check_items(value, file, line);
  try {
    if (auto read = value_of_text(key, value)) return *std::move(read);
    return value;
  } catch (const std::invalid_argument& error) {
    refuse(file, line, fmt::format("`{}`: {}", key.name, error.what()));
  }
}

json::value whole_where_it_can_be(double value) {
  if (value == static_cast<double>(static_cast<std::int64_t>(value)))
    return static_cast<std::int64_t>(value);
  return value;
}

json::value number_of(const View& view) {
  return whole_where_it_can_be(
      view.number(std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max()));
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

bool is_amount_of_its_own(std::string_view name) {
  return name == "cpus" || name == "memory" || name == "disk" || name == "gpus";
}

json::value number_or_map(const View& view) {
  if (view.node().kind != Node::Kind::Map) return plain(view.node(), view.file());
  const auto& fields = view.node().fields;
  const bool has_terms =
      view.name() == "gpus" &&
      std::any_of(fields.begin(), fields.end(), [](const Field& f) { return is_gpu_term(f.name); });
  json::object amounts;
  for (const Field& field : fields) {
    if (has_terms && !is_gpu_term(field.name))
      refuse(view.file(), field.line,
             "'" + field.name + "' of gpus is unknown" + spelling_hint(field.name, kGpuTerms));
    if (has_terms && field.name != "count") {
      amounts[field.name] = plain(field.value, view.file());
      continue;
    }
    if (is_amount_of_its_own(field.name))
      refuse(view.file(), field.line,
             "'" + field.name + "' is a key of the task itself, not of its " + view.name());
    amounts[field.name] = number_of(View(field.value, view.file(), field.name));
  }
  return amounts;
}

json::value service_of(const View& view) {
  json::value service = plain(view.node(), view.file());
  if (view.node().kind != Node::Kind::Map) return service;
  for (const Field& field : view.node().fields) {
    if (field.name == "requests")
      service.get_object()[field.name] = number_of(View(field.value, view.file(), field.name));
  }
  return service;
}

json::value typed(const TaskKey& key, const View& view);

/// Ways to run a task, each with keys as a task has them.
json::value one_of_in(const View& view) {
  if (view.node().kind != Node::Kind::List) return plain(view.node(), view.file());
  json::array ways;
  for (const Node& node : view.node().items) {
    if (node.kind == Node::Kind::List)
      View(node, view.file(), view.name()).expected("a map of needs");
    if (node.kind != Node::Kind::Map) {
      ways.push_back(plain(node, view.file()));
      continue;
    }
    json::object way;
    for (const Field& field : node.fields) {
      const View said(field.value, view.file(), field.name);
      way[field.name] = typed(key_named(field.name, view.file(), field.line), said);
    }
    ways.push_back(std::move(way));
  }
  return ways;
}

json::value words_of(const View& view) {
  json::value words = plain(view.node(), view.file());
  for (std::size_t i = 0; words.is_array() && i < words.get_array().size(); ++i) {
    if (view.node().items[i].kind == Node::Kind::Null) words.get_array()[i] = nullptr;
  }
  return words;
}

json::value typed(const TaskKey& key, const View& view) {
  const auto made = [&]() -> json::value {
    if (key.name == "command") return words_of(view);
    switch (key.type) {
      case TaskKey::Type::Gpus:
      case TaskKey::Type::Amounts:
        return number_or_map(view);
      case TaskKey::Type::Service:
        return service_of(view);
      case TaskKey::Type::Ways:
        return one_of_in(view);
      default:
        return plain(view.node(), view.file());
    }
  };
  return checked_value(made(), key, view.file(), view.line());
}

/// No key of a task: the lines of those that it has, and its own.
constexpr const char* kLines = "\x01lines";

json::object task_of(const Node& node, const std::string& file) {
  if (node.kind != Node::Kind::Map)
    View(node, file, "task").expected("a map with `command` or `tool`");
  json::object task, lines{{"", node.line}};
  for (const Field& field : node.fields) {
    lines[field.name] = field.line;
    const View view(field.value, file, field.name);
    const TaskKey& key = key_named(field.name, file, field.line);
    if (view.is_null()) continue;
    task[field.name] = typed(key, view);
    if (field.name == "array") split_array(task, file, field.line);
  }
  if (!task.contains("command") && !task.contains("tool"))
    refuse(file, node.line, "a task needs `command` or `tool`");
  task[kLines] = std::move(lines);
  return task;
}

bool ends_with_any(const std::string& name, std::initializer_list<const char*> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](const char* ending) { return name.ends_with(ending); });
}

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

constexpr std::array kWaits{"after", "after_any", "after_each", "after_start", "after_failed"};

[[noreturn]] void refuse(const std::string& file, const std::string& sentence) {
  throw CommandError(kExitUsage, file + ": " + sentence);
}

/// A word that stands for another task of the file, taken apart.
struct Reference {
  std::size_t task{0};   ///< its place in the file
  std::string of_index;  ///< `.7`, or nothing
};

class Graph {
 public:
  Graph(json::array& tasks, const std::string& file) : tasks_(tasks), file_(file) {
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const std::string name = text_at(at(i), "name");
      if (!name.empty()) named_[name].push_back(i);
    }
    waits_for_.resize(tasks_.size());
  }

  void order();

 private:
  json::object& at(std::size_t task) const { return tasks_[task].get_object(); }
  std::string called(std::size_t task) const {
    const std::string name = text_at(at(task), "name");
    return "task " + std::to_string(task + 1) + (name.empty() ? "" : " (" + name + ")");
  }
  template <class Do>
  void each_word(std::size_t task, Do look) const;
  std::optional<Reference> reference(std::size_t task, const std::string& word) const;
  std::optional<Reference> by_place(std::size_t task, const std::string& word) const;
  std::optional<Reference> by_name(std::size_t task, const std::string& word) const;
  std::vector<std::size_t> sorted() const;

  json::array& tasks_;
  const std::string& file_;
  std::map<std::string, std::vector<std::size_t>> named_;
  std::vector<std::set<std::size_t>> waits_for_;
};

template <class Do>
void Graph::each_word(std::size_t task, Do look) const {
  for (const char* key : kWaits) {
    json::value* value = at(task).if_contains(key);
    if (value == nullptr) continue;
    if (value->is_string()) *value = json::array{*value};
    if (!value->is_array()) continue;
    for (json::value& word : value->get_array()) {
      if (!word.is_string()) continue;
      json::string& text = word.get_string();
      const std::size_t delay =
          std::string_view(key) == "after_start" ? delay_at(text) : text.size();
      const json::string behind = text.subview(delay);
      text.resize(delay);
      look(text);
      text += behind;
    }
  }
}

std::optional<Reference> Graph::by_place(std::size_t task, const std::string& word) const {
  std::size_t place = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data() + 1, end, place);
  if (error != std::errc{} || (stop != end && *stop != '.') || place == 0 || place > tasks_.size())
    refuse(file_, called(task) + " waits for '" + word + "': the file has no such task");
  return Reference{place - 1, std::string(stop, end)};
}

std::optional<Reference> Graph::by_name(std::size_t task, const std::string& word) const {
  // A name may have dots itself.
  auto named = named_.find(word);
  std::string of_index;
  if (const std::size_t dot = word.rfind('.'); named == named_.end() && dot != std::string::npos) {
    named = named_.find(word.substr(0, dot));
    of_index = word.substr(dot);
  }
  if (named == named_.end()) return std::nullopt;
  if (named->second.size() > 1) {
    refuse(file_, called(task) + " waits for '" + word + "', and " +
                      std::to_string(named->second.size()) +
                      " tasks are called so; write #N for the Nth task");
  }
  return Reference{named->second.front(), of_index};
}

/// Nothing where it is the id of what was submitted before.
std::optional<Reference> Graph::reference(std::size_t task, const std::string& word) const {
  if (word.starts_with('#')) return by_place(task, word);
  if (auto found = by_name(task, word)) return found;
  try {
    checked_id(word);
    return std::nullopt;
  } catch (const std::invalid_argument&) {
    std::vector<std::string> names;
    for (const auto& [name, tasks] : named_) names.push_back(name);
    const std::string near = nearest_spelling(word, names);
    refuse(file_, called(task) + " waits for '" + word + "', which is no id and no task's name" +
                      (near.empty() ? "" : "; did you mean '" + near + "'?"));
  }
}

std::vector<std::size_t> Graph::sorted() const {
  std::vector<std::set<std::size_t>> waiting = waits_for_;
  std::vector<std::vector<std::size_t>> followers(tasks_.size());
  std::set<std::size_t> ready;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i].empty()) ready.insert(i);
    for (const std::size_t other : waiting[i]) followers[other].push_back(i);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(next);
    for (const std::size_t follower : followers[next]) {
      waiting[follower].erase(next);
      if (waiting[follower].empty()) ready.insert(follower);
    }
  }
  if (order.size() == tasks_.size()) return order;
  // Whoever still waits leads into the circle.
  std::size_t at = static_cast<std::size_t>(
      std::find_if(waiting.begin(), waiting.end(), [](const auto& w) { return !w.empty(); }) -
      waiting.begin());
  std::vector<std::size_t> way;
  for (; std::find(way.begin(), way.end(), at) == way.end(); at = *waiting[at].begin())
    way.push_back(at);
  if (waiting[at].contains(at)) refuse(file_, called(at) + " waits for itself: it can never start");
  std::string circle = called(at);
  for (auto step = std::find(way.begin(), way.end(), at) + 1; step != way.end(); ++step)
    circle += ", which waits for " + called(*step);
  refuse(file_, circle + ", which waits for the first: none of them can ever start");
}

void Graph::order() {
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    each_word(i, [&](const json::string& word) {
      if (const auto found = reference(i, std::string(word))) waits_for_[i].insert(found->task);
    });
  }
  const std::vector<std::size_t> order = sorted();
  std::vector<std::size_t> place_of(order.size());
  for (std::size_t place = 0; place < order.size(); ++place) place_of[order[place]] = place;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    each_word(i, [&](json::string& word) {
      if (const auto found = reference(i, std::string(word)))
        word = "#" + std::to_string(place_of[found->task] + 1) + found->of_index;
    });
  }
  json::array ordered;
  ordered.reserve(tasks_.size());
  for (const std::size_t task : order) ordered.push_back(std::move(tasks_[task]));
  tasks_ = std::move(ordered);
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
    if (size == 0) break;
    text.append(piece, static_cast<std::size_t>(size));
    if (text.size() > kLimits.bytes) {
      throw CommandError(kExitUsage,
                         "cannot read " + file + ": it is larger than 256 MB; submit it in parts");
    }
  }
  // The mark that some editors put before UTF-8.
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  return text;
}

json::array tasks_of_json_lines(const std::string& text, const std::string& file) {
  json::array tasks;
  int line = 0;
  for (const std::string_view content : lines_of(text)) {
    ++line;
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    boost::system::error_code error;
    const std::string letters = with_numbers_as_texts(content, is_text_key);
    json::value task = json::parse(letters, error);
    if (error) throw DocumentError(file, line, "this line is not valid JSON: " + error.message());
    if (!task.is_object())
      throw DocumentError(file, line,
                          "a task must be a JSON object, like {\"command\": [\"true\"]}");
    if (const auto key = repeated_key(content))
      refuse(file, line, "the key '" + *key + "' stands here a second time");
    if (holds_infinity(task))
      refuse(file, line, "a number is larger than 1.8e308, the largest that a double holds");
    json::object& keys = task.get_object();
    for (auto& entry : keys)
      entry.value() =
          checked_value(entry.value(), key_named(std::string(entry.key()), file, line), file, line);
    if (keys.contains("array")) split_array(keys, file, line);
    if (!keys.contains("command") && !keys.contains("tool"))
      refuse(file, line, "a task needs `command` or `tool`");
    keys[kLines] = json::object{{"", line}};
    tasks.push_back(std::move(task));
  }
  return tasks;
}

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
  const std::string text = read_input(file, interrupt);
  const std::string name = file == "-" ? "standard input" : file;
  json::array tasks = is_yaml   ? tasks_of_yaml(text, name)
                      : is_toml ? tasks_of_toml(text, name)
                                : tasks_of_json_lines(text, name);
  if (tasks.empty()) throw CommandError(kExitUsage, name + " holds no tasks");
  return tasks;
}

TaskPlaces::TaskPlaces(json::array& tasks) {
  for (json::value& task : tasks) {
    const json::value* lines = task.get_object().if_contains(kLines);
    lines_.push_back(lines == nullptr ? json::object() : lines->get_object());
    task.get_object().erase(kLines);
  }
}

std::string TaskPlaces::with_place(const std::string& file, const std::string& text) const {
  constexpr std::string_view kTask = "task ";
  const std::size_t begin = text.find(kTask);
  if (begin == std::string::npos) return text;
  std::size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + begin + kTask.size(), end, number);
  if (error != std::errc{} || number == 0 || number > lines_.size()) return text;
  std::string key;
  if (stop != end && *stop == '.')
    key.assign(stop + 1, std::find_if_not(stop + 1, end, [](char c) {
                 return (c >= 'a' && c <= 'z') || c == '_';
               }));
  const json::object& lines = lines_[number - 1];
  const json::value* line = lines.if_contains(key);
  if (line == nullptr) line = lines.if_contains("");
  return line == nullptr ? text : file + ":" + json::serialize(*line) + ": " + text;
}

void order_tasks(json::array& tasks, const std::string& file) {
  Graph(tasks, file).order();
}

}  // namespace hpcbatch
