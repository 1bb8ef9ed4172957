#include "cli/tasks/submission.hpp"

#include "cli/process/exit.hpp"
#include "documents/text_check.hpp"
#include "model/placeholders.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>
#include <string_view>
#include <system_error>

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

}  // namespace hpcbatch
