#include "api/read/named_files.hpp"

#include "api/read/read_items.hpp"
#include "model/placeholders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>

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

}  // namespace hpcbatch
