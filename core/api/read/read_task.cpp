#include "api/read/read_task.hpp"

#include "api/read/json_values.hpp"
#include "api/read/read_request.hpp"
#include "documents/task_values.hpp"
#include "model/notify_target.hpp"
#include "model/site.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kMostIndices = 1'000'000'000;

struct Reading {
  TaskRequest task;
  bool has_array{false};
  bool has_command{false};
  bool is_singleton{false};
  std::vector<std::string> columns;  ///< names for those of the items
  std::vector<std::string> item_texts;
};

// Each reads the value of one key, which `where` names.

const json::object& map_of(const json::value& value, const std::string& where, const char* of) {
  if (!value.is_object()) throw BadRequest(fmt::format("{} must be a map{}", where, of));
  return value.get_object();
}

// --- what is run

void read_command(const json::value& value, const std::string& where, Reading& reading) {
  reading.task.command = list_of_bytes(value, where);
  reading.has_command = true;
  if (reading.task.command.empty() || reading.task.command.front().empty())
    throw BadRequest(where + " must name a program");
}

std::string parameter_of(const json::value& value, const std::string& where) {
  if (value.is_string()) return text_of(value, where);
  if (value.is_bool()) return value.get_bool() ? "true" : "false";
  if (value.is_int64()) return std::to_string(value.get_int64());
  if (value.is_number()) return fmt::format("{}", value.to_number<double>());
  throw BadRequest(where + " must be a text, a number or a bool");
}

void read_parameters(const json::value& value, const std::string& where, Reading& reading) {
  for (const auto& [name, parameter] : map_of(value, where, ""))
    reading.task.parameters[text_of(json::value(name), where)] =
        parameter_of(parameter, where + "." + std::string(name));
}

void read_items(const json::value& value, const std::string& where, Reading& reading) {
  read_items_into(reading.task, value, reading.columns, reading.item_texts, where);
}

/// "none" says that nobody wants to read it.
std::string stream_of(const json::value& value, const std::string& where) {
  return value.is_string() && value.get_string() == "none" ? "/dev/null" : file_of(value, where);
}

constexpr std::uint32_t kLastIndex = 0xFFFFFFFE;

void read_array(const json::value& value, const std::string& where, Reading& reading) {
  const std::string text = text_of(value, where);
  auto indices = parse_index_set(text);
  if (!indices)
    throw BadRequest(fmt::format(
        "{} '{}' is no list of indices; write for example 1-100 or 1-9:2,20", where, text));
  if (indices->size() > kMostIndices)
    throw BadRequest(fmt::format("{} has {} indices; at most {} go into one array", where,
                                 indices->size(), kMostIndices));
  // Ids count from 1: 12 is all of an array.
  reading.task.from_zero = indices->contains(0);
  if (reading.task.from_zero) {
    std::vector<IndexRange> ranges;
    for (const IndexRange& range : indices->ranges()) {
      if (range.last >= kLastIndex)
        throw BadRequest(fmt::format("{} '{}' ends too high; an array from 0 ends at {} at most",
                                     where, text, kLastIndex - 1));
      ranges.push_back({range.first + 1, range.last + 1});
    }
    indices = IndexSet::of(std::move(ranges));
  }
  reading.task.array.indices = *indices;
  reading.has_array = true;
}

// --- its files

void read_inputs(const json::value& value, const std::string& where, Reading& reading) {
  for (const auto& [name, paths] : map_of(value, where, " of names to paths")) {
    std::vector<std::string>& list = reading.task.inputs[text_of(json::value(name), where)];
    if (paths.is_array()) {
      for (const json::value& path : paths.get_array()) list.push_back(file_of(path, where));
    } else {
      list.push_back(file_of(paths, where));
    }
  }
}

void read_outputs(const json::value& value, const std::string& where, Reading& reading) {
  for (const auto& [name, path] : map_of(value, where, " of names to paths"))
    reading.task.outputs[text_of(json::value(name), where)] = file_of(path, where);
}

std::vector<std::string> folders_of(const json::value& value, const std::string& where) {
  std::vector<std::string> folders = list_of_bytes(value, where);
  for (const std::string& folder : folders) path_of(json::value(folder), where);
  return folders;
}

void read_follows(const json::value& value, const std::string& where, Reading& reading) {
  for (const std::string& text : texts_of(value, where)) {
    const Selection selection = parse_selection(text);
    if (selection.indices)
      throw BadRequest(fmt::format("{} '{}' must be a whole submission", where, text));
    reading.task.follows.push_back(selection.array.value);
  }
}

void read_output_limit(const json::value& value, const std::string& where, Reading& reading) {
  const bool has_none = value.is_string() && value.get_string() == "none";
  reading.task.output_limit =
      has_none ? kNoOutputLimit : static_cast<std::uint64_t>(size_of(value, where).whole());
  if (reading.task.output_limit < kLeastOutputLimit)
    throw BadRequest(fmt::format("{}: {} bytes are too few; write for example 10M, or none", where,
                                 reading.task.output_limit));
}

// --- what it needs

bool is_all(const json::value& value) {
  return value.is_string() && value.get_string() == "all";
}

void read_cpus(const json::value& value, const std::string& where, Reading& reading) {
  reading.task.says_cpus = true;
  reading.task.all_cpus = is_all(value);
  if (reading.task.all_cpus) return;
  const Amount cpus = Amount::of_fraction(number_of(value, where));
  if (cpus == Amount{}) throw BadRequest(where + " must be more than 0");
  reading.task.array.needs.amounts.set(kCpus, cpus);
}

void read_memory(const json::value& value, const std::string& where, Reading& reading) {
  reading.task.says_memory = true;
  reading.task.all_memory = is_all(value);
  if (reading.task.all_memory) return;
  const Amount memory = size_of(value, where);
  if (memory < kLeastMemory)
    throw BadRequest(fmt::format("{}: {} bytes are too few for any process; write for example 512M",
                                 where, memory.whole()));
  reading.task.array.needs.amounts.set(kMemory, memory);
}

void read_disk(const json::value& value, const std::string& where, Reading& reading) {
  reading.task.array.needs.amounts.set(kDisk, size_of(value, where));
  reading.task.says_disk = true;
}

void read_gpus(const json::value& value, const std::string& where, Reading& reading) {
  reading.task.says_gpus = true;
  read_gpus_into(reading.task.array.needs.amounts, reading.task.gpu_terms, value, where);
}

void read_gpu_memory(const json::value& value, const std::string& where, Reading& reading) {
  reading.task.gpu_terms.memory = gpu_memory_of(value, where);
}

void read_gpu_capability(const json::value& value, const std::string& where, Reading& reading) {
  reading.task.gpu_terms.capability = gpu_capability_of(value, where);
}

/// Terms are of the GPUs that are asked for, or else of one.
void check_gpu_terms(TaskRequest& task, const std::string& what) {
  if (!task.gpu_terms.any()) return;
  Resources& amounts = task.array.needs.amounts;
  const auto& entries = amounts.entries();
  const auto kinds = std::count_if(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.first.starts_with(kAnyGpu);
  });
  if (kinds > 1)
    throw BadRequest(what +
                     ": 'gpu_memory' and 'gpu_capability' go with GPUs of one kind, or of either "
                     "of several, as a100|h100:2");
  if (kinds == 0 && !task.says_gpus) amounts.set(kAnyGpu, Amount::of(1));
  task.says_gpus = true;
}

void read_resources(const json::value& value, const std::string& where, Reading& reading) {
  const auto& amounts = map_of(value, where, " of names to numbers");
  check_amounts(amounts, where);
  for (const auto& [name, amount] : amounts) {
    const std::string word = plain_word(json::value(name), where);
    if (word == kCpus || word == kMemory || word == kDisk || word.starts_with(kAnyGpu))
      throw BadRequest(fmt::format("{} names '{}', which has a key of its own", where, word));
    reading.task.array.needs.amounts.set(word, Amount::of_fraction(number_of(amount, where)));
  }
}

void read_key(const TaskKey& key, const json::value& said, const std::string& where,
              Reading& reading);

void read_one_of(const json::value& value, const std::string& where, Reading& reading) {
  constexpr std::size_t kMostWays = 8;
  if (!value.is_array() || value.get_array().size() < 2 || value.get_array().size() > kMostWays)
    throw BadRequest(
        fmt::format("{} must be a list of 2 to {} ways to run it, the best first, as "
                    "[{{\"gpus\": 1, \"cpus\": 4}}, {{\"cpus\": 16}}]",
                    where, kMostWays));
  static constexpr std::array<std::string_view, 7> kOfWays{
      "cpus", "memory", "disk", "gpus", "gpu_memory", "gpu_capability", "resources"};
  for (const json::value& one : value.get_array()) {
    const std::string what = fmt::format("{}[{}]", where, reading.task.one_of.size());
    Reading way;
    for (const auto& [key, said] : map_of(one, what, " of needs")) {
      const std::string_view name(key);
      if (std::find(kOfWays.begin(), kOfWays.end(), name) == kOfWays.end())
        throw BadRequest(fmt::format(
            "{}.{}: ways differ by cpus, memory, disk, gpus and resources; all else is said once",
            what, name));
      read_key(*find_task_key(name), said, fmt::format("{}.{}", what, name), way);
    }
    if (way.task.all_cpus || way.task.all_memory)
      throw BadRequest(what + ": each way says how much; 'all' goes without 'one_of'");
    check_gpu_terms(way.task, what);
    Resources& amounts = way.task.array.needs.amounts;
    if (amounts.get(kCpus) == Amount{}) amounts.set(kCpus, Amount::of(1));
    reading.task.one_of.push_back({std::move(amounts), way.task.gpu_terms});
  }
}

void read_time(const json::value& value, const std::string& where, Reading& reading) {
  reading.task.array.needs.time = duration_of(value, where);
  reading.task.says_time = true;
}

void read_time_request(const json::value& value, const std::string& where, Reading& reading) {
  reading.task.array.needs.time_request = duration_of(value, where);
}

void read_estimate(const json::value& value, const std::string& where, Reading& reading) {
  reading.task.estimate = parse_estimate_mode(text_of(value, where));
}

void read_service_of(const json::value& value, const std::string& where, Reading& reading) {
  reading.task.service = read_service(value, where);
  reading.task.array.needs.service = reading.task.service->name;
}

void read_image(const json::value& value, const std::string& where, Reading& reading) {
  reading.task.container = read_container(value, where);
}

void read_max_failures(const json::value& value, const std::string& where, Reading& reading) {
  reading.task.array.give_up_at =
      static_cast<std::uint32_t>(whole_of(value, where, 0, 1'000'000'000)) + 1;
}

/// What `items` are read by, and so are before all else.
void read_before(const json::value&, const std::string&, Reading&) {}

// --- what it waits for

template <Dependency::Kind kind>
void read_after(const json::value& value, const std::string& what, Reading& reading) {
  add_dependencies(value, what, kind, reading.task.array);
}

// --- its course

template <std::optional<Time> Course::*into>
void read_moment(const json::value& value, const std::string& where, Reading& reading) {
  reading.task.array.course.edit().*into = moment_of(value, where);
}

template <bool Course::*into, bool means>
void read_course(const json::value& value, const std::string& where, Reading& reading) {
  if (bool_of(value, where) == means) reading.task.array.course.edit().*into = true;
}

template <std::uint32_t Course::*into>
void read_factor(const json::value& value, const std::string& where, Reading& reading) {
  reading.task.array.course.edit().*into = factor_of(value, where);
}

void read_requeue_exit(const json::value& value, const std::string& where, Reading& reading) {
  reading.task.array.course.edit().requeue_exit =
      static_cast<std::uint8_t>(whole_of(value, where, 1, 255));
}

void read_singleton(const json::value& value, const std::string& where, Reading& reading) {
  reading.is_singleton = bool_of(value, where);
}

void read_notify(const json::value& value, const std::string& where, Reading& reading) {
  reading.task.notify = plain_words(value, where);
  for (const std::string& word : reading.task.notify) {
    const auto target = parse_notify_target(word);
    if (const auto* why = std::get_if<std::string>(&target)) throw BadRequest(where + ": " + *why);
  }
}

// --- plain values: how they are read is the table's to say

void put(const TaskKey& key, const json::value& value, const std::string& where,
         std::string& into) {
  using Type = TaskKey::Type;
  into = key.type == Type::Word                               ? plain_word(value, where)
         : key.type == Type::Stream                           ? stream_of(value, where)
         : key.type == Type::File || key.type == Type::Folder ? file_of(value, where)
                                                              : text_of(value, where);
}
void put(const TaskKey& key, const json::value& value, const std::string& where,
         std::vector<std::string>& into) {
  into = key.type == TaskKey::Type::Folders ? folders_of(value, where) : plain_words(value, where);
}
void put(const TaskKey&, const json::value& value, const std::string& where,
         std::map<std::string, std::string>& into) {
  into = text_map_of(value, where);
}
void put(const TaskKey&, const json::value& value, const std::string& where, bool& into) {
  into = bool_of(value, where);
}
template <std::integral Number>
void put(const TaskKey& key, const json::value& value, const std::string& where, Number& into) {
  into = static_cast<Number>(whole_of(value, where, key.more.least, key.more.most));
}
template <class Value>
void put(const TaskKey& key, const json::value& value, const std::string& where,
         std::optional<Value>& into) {
  put(key, value, where, into.emplace());
}

/// Into what lies there.
template <auto... place>
void plain(const TaskKey& key, const json::value& value, const std::string& where,
           Reading& reading) {
  put(key, value, where, (reading.task.*....*place));
}

/// A value with a grammar of its own, or that concerns more than one place.
template <void (*read)(const json::value&, const std::string&, Reading&)>
void own(const TaskKey&, const json::value& value, const std::string& where, Reading& reading) {
  read(value, where, reading);
}

using Reader = void (*)(const TaskKey&, const json::value&, const std::string&, Reading&);

// A table: a line for each key.
// NOLINTNEXTLINE(readability-function-size)
const std::unordered_map<std::string_view, Reader>& readers() {
  using T = TaskRequest;
  using A = NewArray;
  constexpr auto array = &T::array;
  constexpr auto needs = &A::needs;
  static const std::unordered_map<std::string_view, Reader> all{
      {"command", own<read_command>},
      {"tool", plain<&T::tool>},
      {"parameters", own<read_parameters>},
      {"service", own<read_service_of>},
      {"container", own<read_image>},
      {"name", plain<&T::name>},
      {"kind", plain<&T::kind>},
      {"array", own<read_array>},
      {"numbered", plain<array, &A::numbered>},
      {"items", own<read_items>},
      {"columns", own<read_before>},
      {"item_texts", own<read_before>},
      {"directory", plain<&T::directory>},
      {"environment", plain<&T::environment>},
      {"env", plain<&T::env>},
      {"inputs", own<read_inputs>},
      {"outputs", own<read_outputs>},
      {"shared", plain<&T::shared>},
      {"follows", own<read_follows>},
      {"stdin", plain<&T::standard_input>},
      {"stdout", plain<&T::standard_output>},
      {"stderr", plain<&T::standard_error>},
      {"output_limit", own<read_output_limit>},
      {"stream_input", plain<array, &A::streams_input>},
      {"cpus", own<read_cpus>},
      {"memory", own<read_memory>},
      {"disk", own<read_disk>},
      {"gpus", own<read_gpus>},
      {"gpu_memory", own<read_gpu_memory>},
      {"gpu_capability", own<read_gpu_capability>},
      {"one_of", own<read_one_of>},
      {"estimate", own<read_estimate>},
      {"resources", own<read_resources>},
      {"time", own<read_time>},
      {"time_request", own<read_time_request>},
      {"nodes", plain<array, needs, &Needs::nodes>},
      {"ntasks", plain<&T::ntasks>},
      {"ntasks_per_node", plain<&T::ntasks_per_node>},
      {"site", plain<array, needs, &Needs::site>},
      {"not_sites", plain<array, needs, &Needs::not_on>},
      {"tags", plain<array, needs, &Needs::tags>},
      {"after", own<read_after<Dependency::Kind::Success>>},
      {"after_any", own<read_after<Dependency::Kind::AnyEnd>>},
      {"after_each", own<read_after<Dependency::Kind::EachSuccess>>},
      {"after_start", own<read_after<Dependency::Kind::Start>>},
      {"after_failed", own<read_after<Dependency::Kind::NotSuccess>>},
      {"after_one", own<read_course<&Course::any_of_after, true>>},
      {"singleton", own<read_singleton>},
      {"begin", own<read_moment<&Course::begin>>},
      {"deadline", own<read_moment<&Course::deadline>>},
      {"retry_mem", own<read_factor<&Course::retry_memory>>},
      {"retry_time", own<read_factor<&Course::retry_time>>},
      {"requeue_exit", own<read_requeue_exit>},
      {"requeue", own<read_course<&Course::no_requeue, false>>},
      {"notify", own<read_notify>},
      {"max_running", plain<array, &A::max_running>},
      {"max_failures", own<read_max_failures>},
      {"halt_running", plain<array, &A::gives_up_running>},
      {"retries", plain<array, &A::retries>},
      {"priority", plain<array, &A::priority>},
      {"hold", plain<array, &A::held>},
  };
  return all;
}

void read_key(const TaskKey& key, const json::value& said, const std::string& where,
              Reading& reading) {
  std::optional<json::value> read;
  try {
    read = value_of_text(key, said);
  } catch (const std::invalid_argument& error) {
    throw BadRequest(fmt::format("{}: {}", where, error.what()));
  }
  const json::value& value = read ? *read : said;
  if (key.name == "open_mode") reading.task.appends = value == "append";
  if (key.more.field != 0)
    put_for_pilot(key, value, where, reading.task.for_pilot.edit());
  else
    readers().at(key.name)(key, value, where, reading);
}

/// All of the items, or those whose numbers `array` says.
void choose_items(Reading& reading, const std::string& what) {
  const IndexSet all = IndexRange{1, static_cast<std::uint32_t>(reading.task.items.size())};
  IndexSet& chosen = reading.task.array.indices;
  if (!reading.has_array) {
    chosen = all;
    return;
  }
  if (reading.task.from_zero)
    throw BadRequest(
        fmt::format("{}: 'array' chooses among 'items' by their numbers, from 1, and has 0", what));
  IndexSet beyond = chosen;
  beyond.remove(all);
  if (!beyond.empty()) {
    throw BadRequest(
        fmt::format("{}: 'array' chooses among 'items' by their numbers, 1 to {}, and has {}", what,
                    reading.task.items.size(), to_string(beyond)));
  }
}

void check_ways(const TaskRequest& task, const std::string& what) {
  if (task.one_of.empty()) return;
  if (task.says_cpus || task.says_gpus)
    throw BadRequest(what + ": say 'cpus' and 'gpus' in each of 'one_of', not beside it");
  if (task.all_memory)
    throw BadRequest(what +
                     ": say how much 'memory' each of 'one_of' needs; 'all' goes without 'one_of'");
}

/// As large as any array of a batch system; each takes as many of the numbers.
constexpr std::uint64_t kMostNumbered = 1'000'001;

void check_numbered_task(const Reading& reading, const std::string& what) {
  const TaskRequest& task = reading.task;
  if (!reading.has_command) throw BadRequest(what + ": 'numbered' goes with a 'command'");
  if (task.array.indices.size() > kMostNumbered)
    throw BadRequest(
        fmt::format("{}: the array has {} indices; at most {} go into one with 'numbered'", what,
                    task.array.indices.size(), kMostNumbered));
}

/// What no key says alone.
void check_together(Reading& reading, const std::string& what) {
  TaskRequest& task = reading.task;
  NewArray& array = task.array;
  if (reading.has_command == !task.tool.empty())
    throw BadRequest(what + " must have either 'command' or 'tool'");
  if (reading.has_command && !task.parameters.empty())
    throw BadRequest(what + ": 'parameters' belong to a tool; name one");
  if (reading.is_singleton) array.course.edit().singleton = singleton_of(task.name, what);
  if (array.needs.time && array.needs.time_request > array.needs.time)
    throw BadRequest(what + ": 'time_request' is more than 'time', its limit");
  check_course(array, what);
  check_gpu_terms(task, what);
  check_ways(task, what);
  check_nodes(task, what);
  if (!array.needs.site.empty() && !may_run_at(array.needs, array.needs.site)) {
    throw BadRequest(fmt::format("{}: '{}' is both the 'site' and among 'not_sites'; leave one out",
                                 what, array.needs.site));
  }
  if (array.gives_up_running && array.give_up_at == 0)
    throw BadRequest(what + ": 'halt_running' goes with 'max_failures'");
  if (!task.items.empty()) {
    if (!reading.has_command) throw BadRequest(what + ": 'items' go with a 'command'");
    choose_items(reading, what);
  }
  if (array.numbered) check_numbered_task(reading, what);
  if (!reading.columns.empty() && !task.items_have_columns)
    throw BadRequest(what + ": 'columns' name those of 'items' that are lists");
  if (!task.items.empty()) check_no_shell_reads_items(task.command, example_item(task), what);
  check_places(task, what);
  check_named_files(task, what);
  check_own_paths(task, what);
  if (task.service) task.service->on_devices = task.array.needs.amounts.gpus() > Amount{};
  if (task.service && (!reading.has_command || !task.container.image.empty()))
    throw BadRequest(what + ": a 'service' goes with a 'command' without a 'container'");
  if (array.streams_input && (array.indices.size() != 1 || !task.standard_input.empty())) {
    throw BadRequest(what + ": streamed input goes to one task without 'stdin'");
  }
}

}  // namespace

TaskRequest read_task(const json::value& value, const std::string& what) {
  if (!value.is_object()) throw BadRequest(what + " must be an object");
  Reading reading;
  reading.task.array.indices = IndexRange{0, 0};
  reading.task.array.needs.amounts.set(kCpus, Amount::of(1));
  if (const json::value* columns = value.get_object().if_contains("columns"))
    reading.columns = read_columns(*columns, what + ".columns");
  if (const json::value* texts = value.get_object().if_contains("item_texts"))
    reading.item_texts = list_of_bytes(*texts, what + ".item_texts");
  for (const auto& [key, entry] : value.get_object()) {
    const std::string where = what + "." + std::string(key);
    const TaskKey* known = find_task_key(std::string_view(key));
    if (known == nullptr)
      throw BadRequest(where + " is no key of a task" + task_key_hint(std::string_view(key)));
    read_key(*known, entry, where, reading);
  }
  check_together(reading, what);
  if (!is_array(reading.task)) fill_nothing(reading.task);
  return std::move(reading.task);
}

bool is_read(const TaskKey& key) {
  return key.more.field != 0 || readers().contains(key.name);
}

NeedsChange read_needs_change(const json::value& value) {
  Reading reading;
  for (const auto& [key, said] : map_of(value, "'needs'", " of what is to change")) {
    if (key != "cpus" && key != "memory" && key != "disk" && key != "time" && key != "gpus")
      throw BadRequest(
          fmt::format("'needs' has '{}'; cpus, memory, disk, time and gpus can be changed",
                      std::string_view(key)));
    read_key(*find_task_key(std::string_view(key)), said,
             fmt::format("'needs.{}'", std::string_view(key)), reading);
  }
  if (reading.task.all_cpus || reading.task.all_memory)
    throw BadRequest("'needs': a retry says how much; 'all' goes with a submit");
  if (reading.task.says_gpus && reading.task.array.needs.amounts.gpus() == Amount{})
    throw BadRequest("'needs.gpus': a retry may have other GPUs, not none; submit it anew");
  if (reading.task.gpu_terms.any())
    throw BadRequest(
        "'needs.gpus': a retry names kinds, as a100|h100, not their memory or capability");
  return {reading.task.array.needs.amounts, reading.task.array.needs.time, {}};
}

}  // namespace hpcbatch
