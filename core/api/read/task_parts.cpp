#include "api/read/read_task.hpp"

#include "api/read/json_values.hpp"
#include "api/read/read_request.hpp"
#include "documents/json_numbers.hpp"
#include "documents/task_values.hpp"
#include "documents/texts.hpp"
#include "hardware/gpu_kind.hpp"
#include "model/ids.hpp"
#include "model/item.hpp"
#include "model/quantities.hpp"
#include "programs/program_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hpcbatch {
namespace {

namespace json = boost::json;

void read_binds(const json::value& value, const std::string& where, ContainerTerms& terms) {
  for (const std::string& text : texts_of(value, where)) {
    const auto bind = parse_container_bind(text);
    if (!bind || bind->from.front() != '/' || bind->to.front() != '/')
      throw BadRequest(fmt::format(
          "{}: '{}' is no bind; write /FOLDER, /FOLDER:/THERE or /FOLDER:/THERE:ro", where, text));
    terms.binds.push_back(*bind);
  }
}

std::string word_of(const json::value& value, const std::string& where) {
  if (value.is_bool()) return value.get_bool() ? "true" : "false";
  return text_of(value, where);
}

}  // namespace

ContainerRequest read_container(const json::value& value, const std::string& what) {
  if (value.is_string()) return {text_of(value, what), {}};
  if (!value.is_object())
    throw BadRequest(what + " must be the name of an image, or an object with 'image'");
  ContainerRequest container;
  for (const auto& [key, entry] : value.get_object()) {
    const std::string where = fmt::format("{}.{}", what, std::string_view(key));
    if (key == "image") {
      container.image = text_of(entry, where);
    } else if (key == "binds") {
      read_binds(entry, where, container.terms);
    } else if (key == "environment") {
      container.terms.variables = text_map_of(entry, where);
    } else if (const std::string complaint = take_container_word(
                   container.terms, std::string_view(key), word_of(entry, where));
               !complaint.empty()) {
      throw BadRequest(fmt::format("{} {}", where, complaint));
    }
  }
  if (container.image.empty()) throw BadRequest(what + ".image is missing");
  return container;
}

namespace {

/// One or several with | between; empty: any.
std::string gpu_kinds_of(const json::value& value, const std::string& where) {
  std::string kinds = text_of(value, where);
  if (const auto why = wrong_gpu_kinds(kinds))
    throw BadRequest(fmt::format("{} '{}': {}", where, kinds, *why));
  return kinds == "any" ? std::string() : kinds;
}

Amount gpu_count_of(const json::value& value, const std::string& where) {
  const double count = number_of(value, where);
  if (const auto why = wrong_gpu_count(count))
    throw BadRequest(fmt::format("{} {:g}: {}", where, count, *why));
  return Amount::of_fraction(count);
}

std::string gpus_named(const std::string& kinds) {
  return kinds.empty() ? std::string(kAnyGpu) : std::string(kGpuPrefix) + kinds;
}

}  // namespace

std::uint64_t gpu_memory_of(const json::value& value, const std::string& where) {
  const Amount memory = size_of(value, where);
  if (memory < kLeastMemory)
    throw BadRequest(
        fmt::format("{}: no GPU has {} bytes; write for example 40G", where, memory.whole()));
  return static_cast<std::uint64_t>(memory.whole());
}

unsigned gpu_capability_of(const json::value& value, const std::string& where) {
  const auto capability =
      parse_capability(value.is_string() ? std::string(value.get_string())
                                         : fmt::format("{:g}", number_of(value, where)));
  if (!capability) throw BadRequest(where + " must be a compute capability of CUDA, as 8.0");
  return *capability;
}

namespace {

/// How many, and what each of them must be.
void read_gpu_terms(Resources& amounts, GpuTerms& terms, const json::object& said,
                    const std::string& where) {
  std::string kind;
  Amount count = Amount::of(1);
  for (const auto& [key, value] : said) {
    const std::string what = where + "." + std::string(key);
    if (key == "count") {
      count = gpu_count_of(value, what);
    } else if (key == "kind") {
      kind = gpu_kinds_of(value, what);
    } else if (key == "memory") {
      terms.memory = gpu_memory_of(value, what);
    } else if (key == "capability") {
      terms.capability = gpu_capability_of(value, what);
    } else {
      throw BadRequest(what + " is unknown" + spelling_hint(std::string_view(key), kGpuTerms));
    }
  }
  amounts.set(gpus_named(kind), count);
}

bool are_gpu_terms(const json::object& said) {
  return std::any_of(said.begin(), said.end(),
                     [](const auto& entry) { return is_gpu_term(entry.key()); });
}

}  // namespace

void read_gpus_into(Resources& amounts, GpuTerms& terms, const json::value& value,
                    const std::string& where) {
  if (value.is_number()) {
    amounts.set(kAnyGpu, gpu_count_of(value, where));
    return;
  }
  if (!value.is_object())
    throw BadRequest(where + " must be a number, a text as a100:2, or a map of kinds to numbers");
  if (are_gpu_terms(value.get_object()))
    return read_gpu_terms(amounts, terms, value.get_object(), where);
  check_amounts(value.get_object(), where);
  int open = 0;
  for (const auto& [kind, count] : value.get_object()) {
    const std::string name = gpus_named(gpu_kinds_of(json::value(kind), where));
    amounts.set(name, gpu_count_of(count, where));
    open += names_several_gpus(name) ? 1 : 0;
  }
  if (open > 1)
    throw BadRequest(where +
                     " leaves open more than once which kind it gets; say one of a|b alone");
}

namespace {

TaskService::Kind kind_in(const json::value& entry, const std::string& where) {
  const std::string kind = text_of(entry, where);
  if (kind == "answer") return TaskService::Kind::Answer;
  if (kind != "fork") throw BadRequest(where + " must be 'fork' or 'answer'");
  return TaskService::Kind::Fork;
}

}  // namespace

TaskService read_service(const json::value& value, const std::string& what) {
  if (!value.is_object()) throw BadRequest(what + " must be an object with 'name' and 'command'");
  TaskService service;
  bool has_batch = false;
  for (const auto& [key, entry] : value.get_object()) {
    const std::string where = what + "." + std::string(key);
    if (key == "name") {
      service.name = plain_word(entry, where);
    } else if (key == "kind") {
      service.kind = kind_in(entry, where);
    } else if (key == "command") {
      service.argv = list_of_bytes(entry, where);
      if (service.argv.empty() || service.argv.front().empty())
        throw BadRequest(where + " must name a program");
    } else if (key == "env") {
      service.variables = text_map_of(entry, where);
    } else if (key == "memory") {
      service.memory = static_cast<std::uint64_t>(size_of(entry, where).whole());
    } else if (key == "idle") {
      service.idle = std::chrono::ceil<std::chrono::milliseconds>(duration_of(entry, where));
    } else if (key == "start") {
      service.start = std::chrono::ceil<std::chrono::milliseconds>(duration_of(entry, where));
    } else if (key == "requests") {
      service.requests =
          static_cast<std::uint32_t>(whole_of(entry, where, 1, kMostServiceRequests));
    } else if (key == "batch") {
      service.batch = static_cast<std::uint32_t>(whole_of(entry, where, 1, kLargestServiceBatch));
      has_batch = true;
    } else if (key == "instances") {
      service.instances =
          static_cast<std::uint32_t>(whole_of(entry, where, 1, kMostServiceInstances));
      has_batch = true;
    } else {
      throw BadRequest(where + " is no key of a service; docs/api.md lists them");
    }
  }
  if (service.name.empty()) throw BadRequest(what + ".name is missing");
  if (service.argv.empty()) throw BadRequest(what + ".command is missing: what starts the service");
  if (has_batch && service.kind != TaskService::Kind::Answer)
    throw BadRequest(what + ": 'batch' and 'instances' are for a service with 'kind': 'answer'");
  return service;
}

namespace {

std::string value_of(const json::value& field) {
  if (field.is_string()) return std::string(field.get_string());
  return field.is_null() ? std::string() : with_plain_numbers(json::serialize(field));
}

Item row_of(const json::array& values, const std::vector<std::string>& columns,
            const std::string& where) {
  if (!columns.empty() && values.size() != columns.size())
    throw BadRequest(fmt::format("{} has {} values, and there are {} columns", where, values.size(),
                                 columns.size()));
  std::vector<std::string> texts;
  for (const json::value& value : values) texts.push_back(bytes_of(value, where));
  if (texts.empty()) throw BadRequest(where + " is empty");
  // As GNU parallel has them where the whole is asked for.
  Item item(fmt::format("{}", fmt::join(texts, " ")));
  for (std::size_t i = 0; i < texts.size(); ++i)
    item.add_column(columns.empty() ? std::to_string(i + 1) : columns[i], std::move(texts[i]));
  return item;
}

Item object_of(const json::object& fields, const std::string& where) {
  Item item(with_plain_numbers(json::serialize(fields)));
  for (const auto& [name, value] : fields)
    item.add_column(text_of(json::value(name), where), value_of(value));
  return item;
}

std::string packed(const Item& item, const std::string& where) {
  const bool is_good = can_be_packed(item.text()) &&
                       std::all_of(item.columns().begin(), item.columns().end(), [](const auto& c) {
                         return can_be_packed(c.first) && can_be_packed(c.second);
                       });
  if (!is_good)
    throw BadRequest(where + " holds one of the control characters 0x1e and 0x1f; leave them out");
  return item.packed();
}

void check_size(const std::string& item, const std::string& where) {
  if (item.size() > kLargestItem)
    throw BadRequest(
        fmt::format("{} has {} bytes, more than the {} that the system hands to a "
                    "program; put it into a file and name that",
                    where, item.size(), kLargestItem));
}

/// Of rows and objects, in place of what they would be as one text.
void put_whole_texts(TaskRequest& task, const std::vector<std::string>& texts,
                     const std::string& where) {
  if (!task.items_have_columns || texts.size() != task.items.size())
    throw BadRequest(where + ": there is one 'item_texts' for each item that has columns");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string which = fmt::format("{} {}", where, i + 1);
    check_size(texts[i], which);
    Item item(texts[i]);
    const Item row = Item::unpacked(task.items[i]);
    for (const auto& [name, column] : row.columns()) item.add_column(name, column);
    task.items[i] = packed(item, which);
  }
}

}  // namespace

std::vector<std::string> read_columns(const json::value& value, const std::string& where) {
  std::vector<std::string> names = texts_of(value, where);
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (name.find_first_not_of("0123456789") == std::string::npos)
      throw BadRequest(
          fmt::format("{}: '{}' is no name; columns have numbers by themselves", where, name));
    if (!seen.insert(name).second)
      throw BadRequest(fmt::format("{}: two columns are called '{}'", where, name));
  }
  return names;
}

void read_items_into(TaskRequest& task, const json::value& value,
                     const std::vector<std::string>& columns,
                     const std::vector<std::string>& whole_texts, const std::string& where) {
  if (!value.is_array()) {
    task.items = list_of_bytes(value, where);
    return;
  }
  const json::array& list = value.get_array();
  if (list.empty()) throw BadRequest(where + " is empty: there is nothing to do");
  task.items.reserve(list.size());
  task.items_have_columns = !list.front().is_string();
  for (const json::value& one : list) {
    const std::string which = fmt::format("{} {}", where, task.items.size() + 1);
    if (one.is_string() == task.items_have_columns || one.kind() != list.front().kind())
      throw BadRequest(which +
                       " is of another kind than the first: all are texts, lists of texts, "
                       "or objects");
    const Item item = one.is_array()    ? row_of(one.get_array(), columns, which)
                      : one.is_object() ? object_of(one.get_object(), which)
                                        : Item(bytes_of(one, which));
    check_size(item.text(), which);
    task.items.push_back(task.items_have_columns ? packed(item, which) : item.text());
  }
  if (!whole_texts.empty()) put_whole_texts(task, whole_texts, where);
}

Item item_at(const TaskRequest& task, std::size_t index) {
  const std::string& text = task.items.at(index - 1);
  return task.items_have_columns ? Item::unpacked(text) : Item(text);
}

Item example_item(const TaskRequest& task) {
  return task.items.empty() ? Item() : item_at(task, 1);
}

void check_no_shell_reads_items(const std::vector<std::string>& command, const Item& item,
                                const std::string& what) {
  std::vector<std::string> marked;
  marked.reserve(command.size());
  for (const std::string& word : command) marked.push_back(with_places_marked(word, item));
  const auto text = misplaced_text(marked);
  if (!text) return;
  const std::string_view place = first_item_place(command[text->word], item);
  const std::string_view inner = place.substr(1, place.find_first_of(":}") - 1);
  if (text->word == 0 && text->why == MisplacedText::Why::Suspect) {
    std::string line = command.front();
    line.replace(line.find(place), place.size(), fmt::format("{{{}:q}}", inner));
    throw BadRequest(fmt::format(
        "{}: the command is one word here, and no shell reads it; a line for a shell is: "
        "sh -c '{}'",
        what, line.find('\'') == std::string::npos ? line : "LINE, with {:q} for {}"));
  }
  throw BadRequest(
      fmt::format("{}: {}; or write \"$HPCBATCH_ITEM\" there (items that are commands: "
                  "sh -c 'eval \"$1\"' sh {{}})",
                  what,
                  why_misplaced(*text, place, fmt::format("{{{}:q}}", inner),
                                fmt::format("{{{}:raw}}", inner))));
}

namespace {

struct Named {
  Selection selection;
  bool is_users_index{false};
};

/// `12`, `12.3`, or `12_3` with the index that its user gave it.
Named named_in(std::string text) {
  const std::size_t line = text.find('_');
  if (line != std::string::npos) text[line] = '.';
  return {parse_selection(text), line != std::string::npos};
}

}  // namespace

void add_dependencies(const json::value& value, const std::string& what, Dependency::Kind kind,
                      NewArray& array) {
  for (const std::string& text : texts_of(value, what)) {
    const bool is_sibling = text.starts_with('#');
    const std::size_t end = kind == Dependency::Kind::Start ? delay_at(text) : text.size();
    const Named named = named_in(text.substr(is_sibling ? 1 : 0, end - (is_sibling ? 1 : 0)));
    const Selection& selection = named.selection;
    Dependency dependency{
        .array = selection.array, .kind = kind, .is_users_index = named.is_users_index};
    if (end < text.size()) dependency.delay = *parse_duration(text.substr(end + 1));
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
    array.after.push_back(dependency);
  }
}

Time moment_of(const json::value& value, const std::string& where) {
  constexpr double kFirst = 1e8, kLast = 1e11;
  const double seconds = value.is_number() ? value.to_number<double>() : 0;
  if (seconds < kFirst || seconds > kLast)
    throw BadRequest(where + " must be a moment: seconds since 1970, or as 2026-01-31T12:00");
  return Time(std::chrono::round<Duration>(std::chrono::duration<double>(seconds)));
}

std::uint32_t factor_of(const json::value& value, const std::string& where) {
  constexpr double kMost = 100;
  const double factor = value.is_number() ? value.to_number<double>() : 0;
  if (factor < 1 || factor > kMost) throw BadRequest(where + " must be a factor from 1 to 100");
  return static_cast<std::uint32_t>(std::lround(factor * 100));
}

const std::string& singleton_of(const std::string& name, const std::string& what) {
  if (name.empty())
    throw BadRequest(what + ": 'singleton' goes with a 'name', which tells who has to end before");
  // The store keeps it in a line of its own.
  if (name.find('\n') != std::string::npos)
    throw BadRequest(what + ": with 'singleton' a 'name' must be one line");
  return name;
}

void check_course(const NewArray& array, const std::string& what) {
  const Course& course = array.course.get();
  if (course.begin && course.deadline && *course.begin >= *course.deadline)
    throw BadRequest(what +
                     ": its 'begin' is not before its 'deadline', so that it could never run");
  if (!course.any_of_after) return;
  if (!course.singleton.empty())
    throw BadRequest(what + ": 'singleton' is one more that it waits for; leave 'after_one' out");
  const bool has_pairs = std::any_of(array.after.begin(), array.after.end(), [](const auto& on) {
    return on.kind == Dependency::Kind::EachSuccess;
  });
  if (has_pairs)
    throw BadRequest(what + ": 'after_each' pairs tasks, and goes without 'after_one'");
}

namespace {

constexpr std::uint64_t kMostRanks = 1'000'000;
constexpr std::uint32_t kRanksOnWire = 42;  // `ntasks` of Start

/// A number, as a field of a message of Protocol Buffers ("Encoding": a tag and a varint).
void put_number_for_pilot(std::uint32_t field, std::uint64_t number, std::string& message) {
  for (std::uint64_t rest : {std::uint64_t{field} << 3, number}) {
    for (; rest > 0x7f; rest >>= 7) message += static_cast<char>(0x80 | (rest & 0x7f));
    message += static_cast<char>(rest);
  }
}

}  // namespace

void check_nodes(TaskRequest& task, const std::string& what) {
  Needs& needs = task.array.needs;
  if (needs.nodes > 1 && (!task.container.image.empty() || task.service))
    throw BadRequest(fmt::format(
        "{}: a task over several 'nodes' runs in no '{}'; let its command start containers on each",
        what, task.service ? "service" : "container"));
  if (task.ntasks_per_node != 0) {
    const std::uint64_t all = std::uint64_t{task.ntasks_per_node} * needs.nodes;
    if (task.ntasks > all || all > kMostRanks)
      throw BadRequest(
          fmt::format("{}: 'ntasks_per_node' {} on {} nodes makes {} processes, where {}", what,
                      task.ntasks_per_node, needs.nodes, all,
                      task.ntasks > all ? fmt::format("'ntasks' is {}", task.ntasks)
                                        : fmt::format("{} are the most", kMostRanks)));
    if (task.ntasks == 0) task.ntasks = static_cast<std::uint32_t>(all);
  }
  if (task.ntasks == 0) return;
  if (task.ntasks < needs.nodes)
    throw BadRequest(fmt::format("{}: {} 'nodes' are more than the {} processes of 'ntasks'", what,
                                 needs.nodes, task.ntasks));
  put_number_for_pilot(kRanksOnWire, task.ntasks, task.for_pilot.edit());
  if (!task.says_cpus && task.one_of.empty())
    needs.amounts.set(kCpus, Amount::of((task.ntasks + needs.nodes - 1) / needs.nodes));
}

namespace {

std::uint64_t milliseconds(Duration time) {
  return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(time).count());
}

}  // namespace

void put_for_pilot(const TaskKey& key, const json::value& value, const std::string& where,
                   std::string& message) {
  const std::uint32_t field = key.more.field;
  switch (key.type) {
    case TaskKey::Type::Flag:
      return put_number_for_pilot(field, bool_of(value, where) ? 1 : 0, message);
    case TaskKey::Type::TimeSpan:
      return put_number_for_pilot(field, milliseconds(duration_of(value, where)), message);
    case TaskKey::Type::Signal: {
      const EarlySignal signal = read_early_signal(text_of(value, where));
      put_number_for_pilot(field, static_cast<std::uint64_t>(signal.number), message);
      return put_number_for_pilot(field + 1, milliseconds(signal.before), message);
    }
    case TaskKey::Type::Choice: {
      std::uint64_t number = 0;
      const std::string word = text_of(value, where) + " ";
      for (std::string words = std::string(key.more.words) + " "; !words.starts_with(word);
           ++number)
        words.erase(0, words.find(' ') + 1);
      return put_number_for_pilot(field, number, message);
    }
    default:
      return put_number_for_pilot(
          field, static_cast<std::uint64_t>(whole_of(value, where, key.more.least, key.more.most)),
          message);
  }
}

}  // namespace hpcbatch
