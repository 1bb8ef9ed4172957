#include "api/read/read_task.hpp"

#include "api/read/read_request.hpp"
#include "documents/texts.hpp"
#include "model/item.hpp"
#include "programs/program_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hpcbatch {
namespace {

/// Whether a name stands for a file in the task's own directory, however deep.
bool is_inner_name(const std::string& name) {
  if (name.empty() || name.ends_with('/')) return false;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    const std::string_view step(name.data() + at, end - at);
    if (step.empty() || step == "." || step == "..") return false;
    at = end + 1;
  }
  return name.find('\0') == std::string::npos;
}

/// One that begins with the item is absolute where all items are.
void check_path(const TaskRequest& task, const std::string& path, const std::string& what) {
  if (!begins_with_item(path)) return;
  if (task.items.empty())
    throw BadRequest(fmt::format(
        "{}: '{}' is no absolute path, and there are no items that could make it one", what, path));
  for (std::size_t i = 1; i <= task.items.size(); ++i) {
    const Item item = item_at(task, i);
    if (!with_item(path, item).starts_with('/'))
      throw BadRequest(fmt::format("{}: the item '{}' is no absolute path, as '{}' needs it", what,
                                   item.text(), path));
  }
}

void check_name(const char* kind, const std::string& name, const char* example,
                const std::string& what) {
  if (is_inner_name(name)) return;
  throw BadRequest(
      fmt::format("{}: the {} '{}' must be named as a file in the task's own directory, such as {}",
                  what, kind, name, example));
}

void check_inputs(const TaskRequest& task, const std::string& what) {
  for (const auto& [name, paths] : task.inputs) {
    check_name("input", name, "in.wav", what);
    if (paths.size() != 1)
      throw BadRequest(fmt::format("{}: the input '{}' of a command must be one file", what, name));
    if (task.outputs.contains(name))
      throw BadRequest(fmt::format("{}: '{}' is an input and an output", what, name));
  }
}

void check_outputs(const TaskRequest& task, const std::string& what) {
  std::set<std::string> destinations;
  for (const auto& [name, path] : task.outputs) {
    check_name("output", name, "out.txt", what);
    if (path.ends_with('/'))
      throw BadRequest(fmt::format("{}: the output '{}' must go to a file, not to the folder {}",
                                   what, name, path));
    if (!destinations.insert(path).second)
      throw BadRequest(fmt::format("{}: two outputs go to {}", what, path));
  }
}

/// What is a file cannot hold another.
void check_folders(const TaskRequest& task, const std::string& what) {
  const auto is_file = [&](const std::string& name) {
    return task.inputs.contains(name) || task.outputs.contains(name);
  };
  const auto check = [&](const std::string& name) {
    for (std::size_t end = name.find('/'); end != std::string::npos;
         end = name.find('/', end + 1)) {
      if (is_file(name.substr(0, end)))
        throw BadRequest(fmt::format("{}: '{}' is the name of a file, and '{}' would lie in it",
                                     what, name.substr(0, end), name));
    }
  };
  for (const auto& [name, paths] : task.inputs) check(name);
  for (const auto& [name, path] : task.outputs) check(name);
}

}  // namespace

void check_named_files(const TaskRequest& task, const std::string& what) {
  for (const auto& [name, paths] : task.inputs) {
    for (const std::string& path : paths) check_path(task, path, what);
  }
  for (const auto& [name, path] : task.outputs) check_path(task, path, what);
  for (const std::string* path :
       {&task.standard_input, &task.standard_output, &task.standard_error})
    check_path(task, *path, what);
  if (task.directory) check_path(task, *task.directory, what);
  // A tool says itself where its files lie.
  if (!task.tool.empty() || (task.inputs.empty() && task.outputs.empty())) return;
  if (task.directory)
    throw BadRequest(what +
                     ": a command with 'inputs' or 'outputs' runs in a directory of its own; leave "
                     "'directory' out");
  check_inputs(task, what);
  check_outputs(task, what);
  check_folders(task, what);
}

namespace {

/// As many tasks as like may write there.
bool is_device(std::string_view path) {
  return path.starts_with("/dev/") && !path.starts_with("/dev/shm/");
}

struct Written {
  std::string_view what, path;
  bool is_stream{false};  ///< what `log` tells otherwise
};

std::vector<Written> written_by(const TaskRequest& task) {
  std::vector<Written> all;
  if (!task.standard_output.empty()) all.push_back({"stdout", task.standard_output, true});
  if (!task.standard_error.empty() && task.standard_error != task.standard_output)
    all.push_back({"stderr", task.standard_error, true});
  for (const auto& [name, path] : task.outputs) all.push_back({name, path, false});
  return all;
}

/// Several tasks may write there.
bool is_shared(const TaskRequest& task, const Written& written) {
  return is_device(written.path) || (written.is_stream && task.appends);
}

const char* otherwise(const Written& written) {
  return written.is_stream ? "; without it 'log' and 'show' tell what each of them printed" : "";
}

constexpr std::string_view kInAName = "a brace that is meant as it stands is doubled: {{ or }}";

/// `./x` and `x` are one file.
std::string one_name(const std::string& path) {
  const bool is_plain =
      path.find("/.") == std::string::npos && path.find("//") == std::string::npos;
  return is_plain ? path : std::filesystem::path(path).lexically_normal().string();
}

/// It is emptied before the command reads it.
void check_not_read(const TaskRequest& task, const Written& written, const std::string& what) {
  if (!written.is_stream || task.standard_input.empty() ||
      one_name(task.standard_input) != one_name(std::string(written.path)))
    return;
  throw BadRequest(fmt::format(
      "{}: stdin and {} are the same file, {}, which would be emptied before it is read; "
      "write to another file",
      what, written.what, written.path));
}

/// Of a path that differs by its item alone.
void check_items(const TaskRequest& task, const Written& written, const Item& example,
                 const std::string& what) {
  if (task.items.empty() || has_id(written.path, example) || has_index(written.path, example))
    return;
  std::unordered_map<std::string, std::size_t> seen;
  for (std::size_t number = 1; number <= task.items.size(); ++number) {
    const auto [at, is_new] =
        seen.emplace(one_name(with_item(written.path, item_at(task, number))), number);
    if (is_new) continue;
    const std::string item = item_at(task, number).text();
    const std::string other = item_at(task, at->second).text();
    if (other == item) {
      throw BadRequest(
          fmt::format("{}: items {} and {} are both '{}', and both would write {}; put {{index}} "
                      "into the path",
                      what, at->second, number, item, written.path));
    }
    throw BadRequest(fmt::format(
        "{}: items {} and {}, '{}' and '{}', would both write {} ({}); put {{index}} into the path",
        what, at->second, number, other, item, at->first, written.path));
  }
}

}  // namespace

namespace {

void check_streams_alone(const TaskRequest& task, const std::string& what) {
  for (const auto& [name, path] : {std::pair{"stdin", std::string_view(task.standard_input)},
                                   {"stdout", task.standard_output},
                                   {"stderr", task.standard_error}}) {
    if (has_item(path) || has_index(path))
      throw BadRequest(
          fmt::format("{}: {} '{}' asks for an index or an item, which a task alone does not have; "
                      "write {{id}} for its id; {}",
                      what, name, path, kInAName));
  }
}

}  // namespace

bool is_array(const TaskRequest& task) {
  return task.array.indices.size() != 1 || !task.array.indices.contains(0);
}

void check_own_paths(const TaskRequest& task, const std::string& what) {
  const std::size_t tasks = task.array.indices.size();
  const Item example = example_item(task);
  if (!is_array(task)) check_streams_alone(task, what);
  for (const Written& written : written_by(task)) {
    if (is_shared(task, written)) continue;
    check_not_read(task, written, what);
    if (tasks < 2) continue;
    if (!has_place(written.path, example)) {
      throw BadRequest(
          fmt::format("{}: all {} tasks would write {} ({}); put {{index}}, {{id}} or, for the "
                      "item, {{}} into the path{}",
                      what, tasks, written.path, written.what, otherwise(written)));
    }
    check_items(task, written, example, what);
  }
}

void check_numbered(const SubmitRequest& request) {
  if (request.tasks.size() < 2) return;
  std::size_t number = 0;
  for (const TaskRequest& task : request.tasks) {
    ++number;
    if (task.array.numbered && is_array(task))
      throw BadRequest(
          fmt::format("task {}: an array with 'numbered' takes as many ids as it has tasks; submit "
                      "it alone",
                      number));
  }
}

void check_written_once(const SubmitRequest& request) {
  if (request.tasks.size() == 1) return;
  std::unordered_map<std::string_view, std::size_t> writers;
  std::size_t number = 0;
  for (const TaskRequest& task : request.tasks) {
    ++number;
    for (const Written& written : written_by(task)) {
      if (has_place(written.path, example_item(task)) || is_shared(task, written)) continue;
      if (const auto [at, is_new] = writers.emplace(written.path, number);
          !is_new && at->second != number) {
        throw BadRequest(fmt::format("tasks {} and {} would both write {} ({}){}", at->second,
                                     number, written.path, written.what, otherwise(written)));
      }
    }
  }
}

namespace {

constexpr std::string_view kInAScript = "a text that is meant as it stands belongs into a script";

/// What all tasks share and is filled in for each, but for the command: there `{index}` and `{id}`
/// are known, too.
std::vector<std::string_view> paths_of(const TaskRequest& task) {
  std::vector<std::string_view> all{task.standard_input, task.standard_output, task.standard_error};
  if (task.items.empty() && !is_array(task)) return all;
  all.emplace_back(task.name);
  if (task.directory) all.emplace_back(*task.directory);
  for (const auto& [name, paths] : task.inputs) all.insert(all.end(), paths.begin(), paths.end());
  for (const auto& [name, path] : task.outputs) all.emplace_back(path);
  return all;
}

/// A name that is no placeholder has a number.
void check_odd_names(const TaskRequest& task, const Item& item, const std::string& what) {
  std::vector<std::string_view> texts = paths_of(task);
  texts.insert(texts.end(), task.command.begin(), task.command.end());
  std::size_t number = 0;
  for (const auto& [name, value] : item.columns()) {
    ++number;
    const std::string place = "{" + name + "}";
    if (columns_asked_for(place).size() == 1) continue;
    for (const std::string_view text : texts) {
      if (text.find(place) != std::string_view::npos)
        throw BadRequest(
            fmt::format("{}: '{}' is no placeholder: a name in one has letters, "
                        "digits, '_' and '-' only; write {{{}}} for that column",
                        what, place, number));
    }
  }
}

/// `{sampel/.}` asks for the column sampel.
std::string_view name_in(std::string_view place) {
  const auto names = columns_asked_for(place);
  return names.empty() ? std::string_view{} : names.front();
}

std::string why_stray(std::string_view place, const TaskRequest& task, const Item& item,
                      bool is_in_command) {
  const std::string_view name = name_in(place);
  const std::string_view as_text = is_in_command ? kInAScript : kInAName;
  if (is_in_command && (name == "index" || name == "id" || place == "{#}")) {
    const bool is_id = name == "id";
    return fmt::format("'{}' is filled into paths only; in a command write {}", place,
                       is_id                ? "$HPCBATCH_TASK_ID, which a shell reads"
                       : task.items.empty() ? "$HPCBATCH_TASK_INDEX, which a shell reads"
                                            : "{#} for the index");
  }
  if (task.items.empty())
    return fmt::format(
        "'{}' stands for nothing that a task without items has; {} for a file of its "
        "own; {}",
        place, is_array(task) ? "write {index} or {id}" : "write {id}", as_text);
  if (item.columns().empty())
    return fmt::format(
        "'{}' stands for nothing: the items are single texts, and {{}} is the item; names and "
        "numbers stand for columns (--columns, --header, JSON lines), {}",
        place, as_text);
  if (name.empty()) return fmt::format("'{}' is no placeholder; {}", place, as_text);
  std::vector<std::string> names;
  for (const auto& [known, value] : item.columns()) names.push_back(known);
  if (name.find_first_not_of("0123456789") == std::string_view::npos)
    return fmt::format("'{{{}}}' stands for a column, and the items have {}; {}", name,
                       names.size(), as_text);
  const std::string near = nearest_spelling(std::string(name), names);
  return fmt::format(
      "'{{{}}}' is no column of the items, which have {}{}", name, fmt::join(names, ", "),
      near.empty() ? fmt::format("; {}", as_text) : "; did you mean '{" + near + "}'?");
}

void check_command(const TaskRequest& task, const Item& item, const std::string& what) {
  // The words of a batch script's command are its folder's and its arguments.
  if (task.items.empty() && (!is_array(task) || task.array.numbered)) return;
  for (std::size_t at = 0; at < task.command.size(); ++at) {
    std::string_view stray;
    if (!task.items.empty()) {
      const auto all = stray_places(task.command[at], item, {}, Doubled::AsTheyStand);
      if (!all.empty()) stray = all.front();
    } else {
      for (const std::string_view place : {"{index}", "{id}", "{#}"}) {
        const std::size_t found = task.command[at].find(place);
        const bool is_a_shells =
            found > 0 && found != std::string::npos && task.command[at][found - 1] == '$';
        if (found != std::string::npos && !is_a_shells) stray = place;
      }
    }
    if (!stray.empty() && !is_code_of_no_shell(task.command, at))
      throw BadRequest(what + ": " + why_stray(stray, task, item, true));
  }
}

/// Items that lack a field which the first one has.
void check_all_have(const TaskRequest& task, const std::set<std::string_view>& asked,
                    const std::string& what) {
  const Item first = item_at(task, 1);
  for (std::size_t i = 2; i <= task.items.size() && !asked.empty(); ++i) {
    const Item item = item_at(task, i);
    for (const std::string_view name : asked) {
      if (first.column(name) != nullptr && item.column(name) == nullptr)
        throw BadRequest(fmt::format("{}: item {} has no column '{}': {}", what, i, name,
                                     item.text().substr(0, 200)));
    }
  }
}

}  // namespace

void check_places(const TaskRequest& task, const std::string& what) {
  // By --array a path has the index for the item.
  const Item item = task.items.empty() && is_array(task) ? Item("1") : example_item(task);
  if (task.items_have_columns) check_odd_names(task, item, what);
  check_command(task, item, what);
  std::set<std::string_view> asked;
  for (const std::string_view text : paths_of(task)) {
    std::vector<std::string_view> stray = stray_places(text, item, {"index", "id"});
    if (task.array.numbered)
      stray = stray_places(text, item, {"index", "id", "number", "array_number", "node"});
    if (!stray.empty()) throw BadRequest(what + ": " + why_stray(stray.front(), task, item, false));
    for (const std::string_view name : columns_asked_for(text)) asked.insert(name);
  }
  if (!task.items_have_columns) return;
  for (const std::string& word : task.command) {
    for (const std::string_view name : columns_asked_for(word, Doubled::AsTheyStand))
      asked.insert(name);
  }
  check_all_have(task, asked, what);
}

void fill_nothing(TaskRequest& task) {
  task.name = without_doubled(task.name);
  if (task.directory) task.directory = without_doubled(*task.directory);
  for (auto& [name, paths] : task.inputs)
    for (std::string& path : paths) path = without_doubled(path);
  for (auto& [name, path] : task.outputs) path = without_doubled(path);
}

}  // namespace hpcbatch
