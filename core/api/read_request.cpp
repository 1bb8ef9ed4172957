#include "api/read_request.hpp"

#include "api/json_words.hpp"
#include "api/named_files.hpp"

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>

#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kMostIndices = 1'000'000'000;

void read_gpus(const json::value& value, const std::string& what, Resources& amounts) {
  if (value.is_number()) {
    amounts.set(kAnyGpu, Amount::of_fraction(number_of(value, what)));
    return;
  }
  if (!value.is_object())
    throw BadRequest(what + " must be a number, or a map of kinds to numbers");
  for (const auto& [kind, count] : value.get_object()) {
    amounts.set(std::string(kGpuPrefix) + plain_word(json::value(kind), what),
                Amount::of_fraction(number_of(count, what)));
  }
}

void read_after(const json::value& value, const std::string& what, Dependency::Kind kind,
                std::vector<Dependency>& after) {
  for (const std::string& text : texts_of(value, what)) {
    const bool is_sibling = text.starts_with('#');
    const Selection selection = parse_selection(is_sibling ? text.substr(1) : text);
    Dependency dependency{.array = selection.array, .kind = kind};
    if (is_sibling) {
      if (selection.array.value > std::numeric_limits<std::uint32_t>::max())
        throw BadRequest(fmt::format("{} '{}': a submission has no such task", what, text));
      dependency.array = {};
      dependency.sibling = static_cast<std::uint32_t>(selection.array.value);
    }
    if (selection.indices) {
      if (selection.indices->size() != 1)
        throw BadRequest(fmt::format("{} '{}' must be one array or one task", what, text));
      if (kind == Dependency::Kind::EachSuccess)
        throw BadRequest(fmt::format("{} '{}' must be a whole array", what, text));
      dependency.index = selection.indices->ranges().front().first;
    }
    after.push_back(dependency);
  }
}

/// Who writes less has meant another unit.
constexpr Amount kLeastMemory = Amount::of(std::int64_t{1} << 20);

/// Bounds that nobody had to think of, where the client names none.
constexpr std::uint64_t kServiceMemory = std::uint64_t{2} << 30;
constexpr std::chrono::minutes kServiceIdle{5};
constexpr std::uint32_t kServiceRequests = 10'000;

RecipeService read_service(const json::value& value, const std::string& what) {
  if (!value.is_object()) throw BadRequest(what + " must be an object with 'name' and 'command'");
  RecipeService service;
  service.memory = kServiceMemory;
  service.idle = kServiceIdle;
  service.requests = kServiceRequests;
  for (const auto& [key, entry] : value.get_object()) {
    const std::string where = what + "." + std::string(key);
    if (key == "name") {
      service.name = plain_word(entry, where);
    } else if (key == "kind") {
      if (text_of(entry, where) != "fork")
        throw BadRequest(where + " must be 'fork', the one kind of service that there is");
    } else if (key == "command") {
      service.argv = texts_of(entry, where);
      if (service.argv.empty() || service.argv.front().empty())
        throw BadRequest(where + " must name a program");
    } else if (key == "env") {
      service.variables = text_map_of(entry, where);
    } else if (key == "memory") {
      service.memory = static_cast<std::uint64_t>(size_of(entry, where).whole());
    } else if (key == "idle") {
      service.idle = std::chrono::ceil<std::chrono::milliseconds>(duration_of(entry, where));
    } else if (key == "requests") {
      service.requests = static_cast<std::uint32_t>(whole_of(entry, where, 1, 1'000'000'000));
    } else {
      throw BadRequest(where + " is no key of a service; docs/api.md lists them");
    }
  }
  if (service.name.empty()) throw BadRequest(what + ".name is missing");
  if (service.argv.empty()) throw BadRequest(what + ".command is missing: what starts the service");
  return service;
}

TaskRequest read_task(const json::value& value, const std::string& what) {
  if (!value.is_object()) throw BadRequest(what + " must be an object");
  TaskRequest task;
  NewArray& array = task.array;
  array.indices = IndexRange{0, 0};
  array.needs.amounts.set(kCpus, Amount::of(1));
  bool has_array = false;
  bool has_command = false;
  for (const auto& [key, entry] : value.get_object()) {
    const std::string where = what + "." + std::string(key);
    if (key == "command") {
      task.command = texts_of(entry, where);
      has_command = true;
      if (task.command.empty() || task.command.front().empty())
        throw BadRequest(where + " must name a program");
    } else if (key == "tool") {
      task.tool = plain_word(entry, where);
    } else if (key == "parameters") {
      if (!entry.is_object()) throw BadRequest(where + " must be a map");
      for (const auto& [name, parameter] : entry.get_object()) {
        if (parameter.is_string()) {
          task.parameters[name] = text_of(parameter, where);
        } else if (parameter.is_bool()) {
          task.parameters[name] = parameter.get_bool() ? "true" : "false";
        } else if (parameter.is_int64()) {
          task.parameters[name] = std::to_string(parameter.get_int64());
        } else if (parameter.is_number()) {
          task.parameters[name] = fmt::format("{}", parameter.to_number<double>());
        } else {
          throw BadRequest(
              fmt::format("{}.{} must be a text, a number or a bool", where, std::string(name)));
        }
      }
    } else if (key == "inputs") {
      if (!entry.is_object()) throw BadRequest(where + " must be a map of names to paths");
      for (const auto& [name, paths] : entry.get_object()) {
        std::vector<std::string>& list = task.inputs[name];
        if (paths.is_array()) {
          for (const json::value& path : paths.get_array()) list.push_back(file_of(path, where));
        } else {
          list.push_back(file_of(paths, where));
        }
      }
    } else if (key == "outputs") {
      if (!entry.is_object()) throw BadRequest(where + " must be a map of names to paths");
      for (const auto& [name, path] : entry.get_object()) task.outputs[name] = file_of(path, where);
    } else if (key == "shared") {
      task.shared = texts_of(entry, where);
      for (const std::string& folder : task.shared) path_of(json::value(folder), where);
    } else if (key == "cpus") {
      const Amount cpus = Amount::of_fraction(number_of(entry, where));
      if (cpus == Amount{}) throw BadRequest(where + " must be more than 0");
      array.needs.amounts.set(kCpus, cpus);
      task.says_cpus = true;
    } else if (key == "memory") {
      const Amount memory = size_of(entry, where);
      if (memory < kLeastMemory)
        throw BadRequest(
            fmt::format("{}: {} bytes are too few for any process; write for example 512M", where,
                        memory.whole()));
      array.needs.amounts.set(kMemory, memory);
      task.says_memory = true;
    } else if (key == "disk") {
      array.needs.amounts.set(kDisk, size_of(entry, where));
      task.says_disk = true;
    } else if (key == "gpus") {
      read_gpus(entry, where, array.needs.amounts);
      task.says_gpus = true;
    } else if (key == "resources") {
      if (!entry.is_object()) throw BadRequest(where + " must be a map of names to numbers");
      for (const auto& [name, amount] : entry.get_object()) {
        const std::string word = plain_word(json::value(name), where);
        if (word == kCpus || word == kMemory || word == kDisk || word.starts_with(kAnyGpu)) {
          throw BadRequest(fmt::format("{} names '{}', which has a key of its own", where, word));
        }
        array.needs.amounts.set(word, Amount::of_fraction(number_of(amount, where)));
      }
    } else if (key == "time") {
      array.needs.time = duration_of(entry, where);
      task.says_time = true;
    } else if (key == "site") {
      array.needs.site = plain_word(entry, where);
    } else if (key == "not_sites") {
      array.needs.not_on = plain_words(entry, where);
    } else if (key == "tags") {
      array.needs.tags = plain_words(entry, where);
    } else if (key == "nodes") {
      array.needs.nodes = static_cast<std::uint32_t>(whole_of(entry, where, 1, 1'000'000));
    } else if (key == "directory") {
      task.directory = path_of(entry, where);
    } else if (key == "environment") {
      task.environment = text_map_of(entry, where);
    } else if (key == "env") {
      task.env = text_map_of(entry, where);
    } else if (key == "stdin") {
      task.standard_input = path_of(entry, where);
    } else if (key == "stdout") {
      task.standard_output = path_of(entry, where);
    } else if (key == "stderr") {
      task.standard_error = path_of(entry, where);
    } else if (key == "container") {
      task.container = text_of(entry, where);
    } else if (key == "name") {
      task.name = text_of(entry, where);
    } else if (key == "stream_input") {
      array.streams_input = bool_of(entry, where);
    } else if (key == "array") {
      const std::string text = text_of(entry, where);
      const auto indices = parse_index_set(text);
      if (!indices)
        throw BadRequest(fmt::format(
            "{} '{}' is no list of indices; write for example 1-100 or 1-9:2,20", where, text));
      if (indices->contains(0))
        throw BadRequest(fmt::format("{} '{}' begins at 0; indices begin at 1", where, text));
      if (indices->size() > kMostIndices)
        throw BadRequest(fmt::format("{} has {} indices; at most {} go into one array", where,
                                     indices->size(), kMostIndices));
      array.indices = *indices;
      has_array = true;
    } else if (key == "max_running") {
      array.max_running = static_cast<std::uint32_t>(whole_of(entry, where, 0, 1'000'000'000));
    } else if (key == "items") {
      task.items = texts_of(entry, where);
      if (task.items.empty()) throw BadRequest(where + " is empty: there is nothing to do");
    } else if (key == "after") {
      read_after(entry, where, Dependency::Kind::Success, array.after);
    } else if (key == "after_any") {
      read_after(entry, where, Dependency::Kind::AnyEnd, array.after);
    } else if (key == "after_each") {
      read_after(entry, where, Dependency::Kind::EachSuccess, array.after);
    } else if (key == "retries") {
      array.retries = static_cast<std::uint32_t>(whole_of(entry, where, 0, 1000));
    } else if (key == "priority") {
      array.priority = static_cast<std::int32_t>(whole_of(entry, where, -1'000'000, 1'000'000));
    } else if (key == "hold") {
      array.held = bool_of(entry, where);
    } else if (key == "service") {
      task.service = read_service(entry, where);
      array.needs.service = task.service->name;
    } else {
      throw BadRequest(where + " is no key of a task; docs/api.md lists them");
    }
  }
  if (has_command == !task.tool.empty())
    throw BadRequest(what + " must have either 'command' or 'tool'");
  if (has_command && !task.parameters.empty())
    throw BadRequest(what + ": 'parameters' belong to a tool; name one");
  if (!array.needs.site.empty() && !may_run_at(array.needs, array.needs.site)) {
    throw BadRequest(fmt::format("{}: '{}' is both the 'site' and among 'not_sites'; leave one out",
                                 what, array.needs.site));
  }
  if (!task.items.empty()) {
    if (has_array)
      throw BadRequest(what + " has both 'array' and 'items'; the items give the indices");
    if (!has_command) throw BadRequest(what + ": 'items' go with a 'command'");
    array.indices = IndexRange{1, static_cast<std::uint32_t>(task.items.size())};
  }
  check_named_files(task, what);
  if (task.service && (!has_command || !task.container.empty()))
    throw BadRequest(what + ": a 'service' goes with a 'command' without a 'container'");
  if (array.streams_input && (array.indices.size() != 1 || !task.standard_input.empty())) {
    throw BadRequest(what + ": streamed input goes to one task without 'stdin'");
  }
  return task;
}

}  // namespace

json::value parse_body(const std::string& body) {
  boost::system::error_code error;
  // It is read once and goes as a whole.
  json::value value = json::parse(body.empty() ? "{}" : body, error,
                                  json::make_shared_resource<json::monotonic_resource>());
  if (error) throw BadRequest("the body is no JSON: " + error.message());
  if (!value.is_object()) throw BadRequest("the body must be a JSON object");
  return value;
}

Selection parse_selection(const std::string& text) {
  Selection selection;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, selection.array.value);
  const auto bad = [&]() -> BadRequest {
    return BadRequest(fmt::format("'{}' is no id; ids look like 12, 12.345 or 12.1-99", text));
  };
  if (error != std::errc{} || selection.array.value == 0) throw bad();
  if (stop == end) return selection;
  if (*stop != '.') throw bad();
  selection.indices =
      parse_index_set(std::string_view(stop + 1, static_cast<std::size_t>(end - stop - 1)));
  if (!selection.indices) throw bad();
  return selection;
}

TaskId parse_task(const std::string& text) {
  const Selection selection = parse_selection(text);
  if (!selection.indices) return {selection.array, 0};
  if (selection.indices->size() != 1)
    throw BadRequest(fmt::format("'{}' names several tasks where one is needed", text));
  return {selection.array, selection.indices->ranges().front().first};
}

std::vector<Selection> read_selections(const json::value& body) {
  const json::value* ids = body.get_object().if_contains("ids");
  if (!ids) throw BadRequest("'ids' is missing: a list like [\"12\", \"12.345\"]");
  std::vector<Selection> selections;
  for (const std::string& text : texts_of(*ids, "ids")) selections.push_back(parse_selection(text));
  if (selections.empty()) throw BadRequest("'ids' is empty: name at least one task");
  return selections;
}

SubmitRequest read_submit(const json::value& body) {
  SubmitRequest request;
  bool has_tasks = false;
  for (const auto& [key, value] : body.get_object()) {
    const std::string where(key);
    if (key == "client") {
      request.client = text_of(value, where);
    } else if (key == "key") {
      request.key = text_of(value, where);
    } else if (key == "directory") {
      request.directory = path_of(value, where);
    } else if (key == "environment") {
      request.environment = text_map_of(value, where);
    } else if (key == "umask") {
      request.umask = umask_of(value, where);
    } else if (key == "tasks") {
      if (!value.is_array() || value.get_array().empty())
        throw BadRequest("'tasks' must be a list of at least one task");
      has_tasks = true;
      const bool one = value.get_array().size() == 1;
      std::size_t number = 0;
      request.tasks.reserve(value.get_array().size());
      for (const json::value& task : value.get_array()) {
        ++number;
        request.tasks.push_back(read_task(task, one ? "task" : fmt::format("task {}", number)));
      }
    } else {
      throw BadRequest(fmt::format("'{}' is no key of a submit; docs/api.md lists them", where));
    }
  }
  if (!has_tasks) throw BadRequest("'tasks' is missing");
  if (request.client.empty())
    throw BadRequest("'client' is missing: a name for whoever submits, for example shell:alice");
  return request;
}

}  // namespace hpcbatch
