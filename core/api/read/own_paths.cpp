#include "api/read/own_paths.hpp"

#include "api/read/read_items.hpp"
#include "api/read/read_request.hpp"
#include "model/placeholders.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <unordered_map>

namespace hpcbatch {
namespace {

/// As many tasks as like may write there.
bool is_device(std::string_view path) {
  return path.starts_with("/dev/");
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

const char* otherwise(const Written& written) {
  return written.is_stream ? "; without it 'log' and 'show' tell what each of them printed" : "";
}

/// `./x` and `x` are one file.
std::string one_name(const std::string& path) {
  const bool is_plain =
      path.find("/.") == std::string::npos && path.find("//") == std::string::npos;
  return is_plain ? path : std::filesystem::path(path).lexically_normal().string();
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

bool is_array(const TaskRequest& task) {
  return task.array.indices.size() != 1 || !task.array.indices.contains(0);
}

Filled filled_of(const TaskRequest& task) {
  if (!task.items.empty()) return task.items_have_columns ? Filled::Rows : Filled::Items;
  bool any = has_place(task.standard_output) || has_place(task.standard_error);
  if (is_array(task)) {
    any = any || has_place(task.standard_input) || has_place(task.directory.value_or(""));
    for (const auto& [name, paths] : task.inputs) {
      for (const std::string& path : paths) any = any || has_place(path);
    }
    for (const auto& [name, path] : task.outputs) any = any || has_place(path);
  }
  return any ? Filled::Paths : Filled::Nothing;
}

void check_own_paths(const TaskRequest& task, const std::string& what) {
  const std::size_t tasks = task.array.indices.size();
  const Item example = example_item(task);
  for (const Written& written : written_by(task)) {
    if (!is_array(task) && written.is_stream &&
        (has_item(written.path) || has_index(written.path))) {
      throw BadRequest(
          fmt::format("{}: {} '{}' asks for an index or an item, which a task alone does not have; "
                      "write {{id}} for its id",
                      what, written.what, written.path));
    }
    if (tasks < 2 || is_device(written.path)) continue;
    if (!has_place(written.path, example)) {
      throw BadRequest(
          fmt::format("{}: all {} tasks would write {} ({}); put {{index}}, {{id}} or, for the "
                      "item, {{}} into the path{}",
                      what, tasks, written.path, written.what, otherwise(written)));
    }
    check_items(task, written, example, what);
  }
}

void check_written_once(const SubmitRequest& request) {
  std::unordered_map<std::string_view, std::size_t> writers;
  std::size_t number = 0;
  for (const TaskRequest& task : request.tasks) {
    ++number;
    if (is_array(task) && !task.directory && has_place(request.directory, example_item(task)) &&
        filled_of(task) != Filled::Nothing) {
      throw BadRequest(
          fmt::format("the folder {} has a placeholder in its name, which would be filled for "
                      "each task; name another 'directory'",
                      request.directory));
    }
    if (request.tasks.size() == 1) return;
    for (const Written& written : written_by(task)) {
      if (has_place(written.path, example_item(task)) || is_device(written.path)) continue;
      if (const auto [at, is_new] = writers.emplace(written.path, number);
          !is_new && at->second != number) {
        throw BadRequest(fmt::format("tasks {} and {} would both write {} ({}){}", at->second,
                                     number, written.path, written.what, otherwise(written)));
      }
    }
  }
}

}  // namespace hpcbatch
