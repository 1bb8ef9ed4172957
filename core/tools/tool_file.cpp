#include "tools/tool_file.hpp"

#include "documents/texts.hpp"
#include "documents/view.hpp"
#include "documents/yaml.hpp"
#include "programs/program_words.hpp"
#include "tools/prepare.hpp"

#include <hpcbatch/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <stdexcept>

namespace hpcbatch {
namespace {

using Type = ParameterDeclaration::Type;

/// Names are used in expressions and in braces.
void check_name(const View& entry, std::set<std::string>& taken) {
  const std::string& name = entry.name();
  const auto is_fine = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  if (name.empty() || name.size() > 64 || std::isdigit(static_cast<unsigned char>(name.front())) ||
      !std::all_of(name.begin(), name.end(), is_fine)) {
    entry.fail(
        fmt::format("'{}' is no name for this; a name is letters, digits and '_', no digit first",
                    show_text(name, 40)));
  }
  if (name == "tool_dir" || name == "inputs") {
    entry.fail(fmt::format("'{}' is a name that every tool has already", name));
  }
  if (!taken.insert(name).second) {
    entry.fail(fmt::format("'{}' is already the name of a parameter, an input or an output", name));
  }
}

ParameterDeclaration parse_parameter(const View& view) {
  static const std::vector<std::string> kTypes{"string", "integer", "number", "boolean"};
  ParameterDeclaration parameter;
  parameter.name = view.name();
  if (view.is_null()) return parameter;
  MapView map = view.map();
  if (const auto type = map.find("type")) {
    const std::string word = type->one_of(kTypes);
    parameter.type =
        static_cast<Type>(std::find(kTypes.begin(), kTypes.end(), word) - kTypes.begin());
  }
  if (const auto choices = map.find("choices")) parameter.choices = choices->texts();
  if (const auto description = map.find("description")) parameter.description = description->text();
  if (const auto value = map.find("default")) {
    try {
      parameter.default_value = checked_value(parameter, value->text());
    } catch (const std::invalid_argument& e) {
      value->fail(fmt::format("the default of '{}' {}", parameter.name, e.what()));
    }
  }
  map.finish();
  return parameter;
}

InputDeclaration parse_input(const View& view) {
  InputDeclaration input;
  input.name = view.name();
  if (view.is_null()) return input;
  MapView map = view.map();
  if (const auto type = map.find("type")) input.many = type->one_of({"file", "files"}) == "files";
  if (const auto optional = map.find("optional")) input.optional = optional->boolean();
  if (const auto description = map.find("description")) input.description = description->text();
  map.finish();
  return input;
}

OutputDeclaration parse_output(const View& view) {
  OutputDeclaration output;
  output.name = view.name();
  output.staged = output.name;
  if (view.is_null()) return output;
  MapView map = view.map();
  if (const auto file = map.find("file")) {
    output.staged = file->non_empty_text();
    if (output.staged.find('/') != std::string::npos || output.staged.front() == '.' ||
        output.staged.front() == '-' || output.staged.size() > 200) {
      file->expected("the name of a file without a folder, not beginning with '.' or '-'");
    }
  }
  if (const auto optional = map.find("optional")) output.optional = optional->boolean();
  if (const auto description = map.find("description")) output.description = description->text();
  map.finish();
  return output;
}

void make_staged_names_unique(std::vector<OutputDeclaration>& outputs) {
  std::set<std::string> taken;
  for (OutputDeclaration& output : outputs) {
    while (!taken.insert(output.staged).second) output.staged = output.name + "-" + output.staged;
  }
}

/// What `read` makes of a text with placeholders, whose braces may have no partners.
template <class Read>
auto read_places(const View& view, Read read) {
  try {
    return read(view.text());
  } catch (const std::invalid_argument& e) {
    view.fail(fmt::format("'{}': {}", view.name(), e.what()));
  }
}

void check_placeholders(const View& view, const std::set<std::string>& names) {
  for (const std::string& name : read_places(view, find_placeholders)) {
    if (!names.contains(name)) {
      view.fail(fmt::format("{{{}}} is not declared; it must be a parameter, an input or an output",
                            show_text(name, 40)));
    }
  }
}

/// What a request may choose freely.  Numbers and choices are not, nor are outputs, which we name.
bool is_free_text(const ToolFile& tool, const std::string& name) {
  const auto is_named = [&](const auto& declared) { return declared.name == name; };
  const auto parameter =
      std::find_if(tool.parameters.begin(), tool.parameters.end(), [&](const auto& one) {
        return is_named(one) && one.type == Type::String && one.choices.empty();
      });
  return parameter != tool.parameters.end() ||
         std::any_of(tool.inputs.begin(), tool.inputs.end(), is_named);
}

/// No shell takes quotes off that stand around all of a word: the program would get them.
void check_no_idle_quotes(const View& word, const std::string& marked) {
  const bool is_quoted = marked.size() == 3 && marked.front() == marked.back() &&
                         (marked.front() == '"' || marked.front() == '\'');
  const bool is_place = is_quoted && (marked[1] == kPlainPlace || marked[1] == kRawPlace);
  if (is_place)
    word.fail(fmt::format(
        "{} would reach the program with its quotes, which no shell takes off here; "
        "write {}",
        show_text(word.text(), 60), show_text(word.text().substr(1, word.text().size() - 2), 60)));
}

/// Fails where a shell or an interpreter would run what a request says.
void check_programs(const View& command, const ToolFile& tool) {
  if (command.node().kind != Node::Kind::List) return;  // its plugin says what is wrong with it
  const std::vector<View> words = command.list();
  std::vector<std::string> marked;
  marked.reserve(words.size());
  for (const View& word : words) {
    marked.push_back(read_places(word, [&](const std::string& text) {
      return mark_placeholders(text,
                               [&](const std::string& name) { return is_free_text(tool, name); });
    }));
  }
  for (std::size_t at = 0; at < words.size(); ++at) check_no_idle_quotes(words[at], marked[at]);
  const auto text = misplaced_text(marked);
  if (!text) return;
  const View& word = words[text->word];
  const std::vector<std::string> names = find_placeholders(word.text());
  const auto name = std::find_if(names.begin(), names.end(),
                                 [&](const auto& one) { return is_free_text(tool, one); });
  word.fail(why_misplaced(*text, "{" + *name + "}", "{" + *name + ":q}", "{" + *name + ":raw}"));
}

/// Whether its plugin is one that knows no key but `command`, and reads no others.
bool is_a_command(const ToolFile& tool) {
  return tool.plugin == "command" || tool.plugin == "media";
}

ToolNames names_for_resources(const ToolFile& tool) {
  ToolNames names{{"inputs.size", "inputs.count"}, {}};
  for (const auto& p : tool.parameters) {
    if (p.type != Type::String) names.known.push_back(p.name);
  }
  for (const auto& input : tool.inputs) {
    names.known.push_back(input.name + ".size");
    names.known.push_back(input.name + ".count");
    // What facts there are besides, its plugin says when it is opened; this one has none.
    if (tool.plugin != "command") names.open.push_back(input.name);
  }
  return names;
}

std::vector<AskedFact> facts_in(const ToolFile& tool) {
  const std::vector<std::string> known = names_for_resources(tool).known;
  std::vector<AskedFact> facts;
  for (const ToolAmount* amount : amounts(tool.resources)) {
    for (const std::string& name : amount->expression.names()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const auto dot = name.find('.');
      facts.push_back({name.substr(0, dot), name.substr(dot + 1), amount->place});
    }
  }
  return facts;
}

void parse_container_map(const View& view, const std::set<std::string>& names, ToolFile& tool) {
  MapView map = view.map();
  const View image = map.get("image");
  check_placeholders(image, names);
  tool.container = image.non_empty_text();
  if (const auto binds = map.find("binds")) {
    for (const View& entry : binds->list()) {
      check_placeholders(entry, names);
      const auto bind = parse_container_bind(entry.text());
      if (!bind) entry.expected("/FOLDER, /FOLDER:/THERE or /FOLDER:/THERE:ro");
      tool.container_terms.binds.push_back(*bind);
    }
  }
  if (const auto environment = map.find("environment")) {
    for (const View& entry : environment->map().entries()) check_placeholders(entry, names);
    tool.container_terms.variables = environment->text_map();
  }
  for (const char* key : {"network", "gpu", "entrypoint", "runtime"}) {
    const auto entry = map.find(key);
    if (!entry) continue;
    const std::string complaint = take_container_word(tool.container_terms, key, entry->text());
    if (!complaint.empty()) entry->fail(fmt::format("'{}' {}", entry->name(), complaint));
  }
  map.finish();
}

void parse_container(const View& view, const std::set<std::string>& names, ToolFile& tool) {
  if (view.node().kind == Node::Kind::Map) {
    parse_container_map(view, names, tool);
  } else {
    check_placeholders(view, names);
    tool.container = view.non_empty_text();
  }
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

void check_file_name(const View& name, const std::string& path) {
  const std::string file = path.substr(path.rfind('/') + 1);
  if (file != name.word() + ".yaml") {
    name.fail(fmt::format("the tool '{}' must be in a file named {}.yaml, not {}", name.word(),
                          name.word(), show_text(file)));
  }
}

SplitDeclaration parse_split(const View& view, const ToolFile& tool) {
  MapView map = view.map();
  const auto one_of = [](const View& name, const auto& declared) {
    std::vector<std::string> names;
    names.reserve(declared.size());
    for (const auto& one : declared) names.push_back(one.name);
    return name.one_of(names);
  };
  SplitDeclaration split{.input = one_of(map.get("input"), tool.inputs),
                         .output = one_of(map.get("output"), tool.outputs),
                         .cut = {},
                         .merge = {}};
  if (const auto cut = map.find("cut")) split.cut = cut->word();
  if (const auto merge = map.find("merge")) split.merge = merge->word();
  map.finish();
  return split;
}

void read_service(const View& view, const std::set<std::string>& names, ToolFile& tool) {
  tool.service = parse_service(view, tool.name);
  const View command = view.map().get("command");
  for (const View& word : command.list()) check_placeholders(word, names);
  check_programs(command, tool);
  if (!tool.container.empty())
    view.fail("a tool with a 'container' has no 'service': start the container in its command");
}

std::chrono::milliseconds milliseconds_of(const View& view) {
  return std::chrono::ceil<std::chrono::milliseconds>(view.duration());
}

std::uint32_t count_of(const View& view, std::uint32_t most) {
  return static_cast<std::uint32_t>(view.integer(1, most));
}

}  // namespace

ToolFile parse_tool(const std::string& text, const std::string& path) {
  const Node root = parse_yaml(text, path);
  const View whole(root, path, "the tool");
  MapView map = whole.map();
  ToolFile tool;
  tool.path = path;
  tool.directory = folder_of(path);
  tool.text = text;
  const View name = map.get("tool");
  check_file_name(name, path);
  tool.name = name.word();
  if (const auto version = map.find("version")) tool.version = version->text();
  if (const auto summary = map.find("summary")) tool.summary = summary->text();
  if (const auto plugin = map.find("plugin")) tool.plugin = plugin->word();

  std::set<std::string> names;
  const auto entries = [&](const std::string& key) {
    const auto section = map.find(key);
    std::vector<View> views = section ? section->map().entries() : std::vector<View>{};
    for (const View& view : views) check_name(view, names);
    return views;
  };
  for (const View& view : entries("parameters")) tool.parameters.push_back(parse_parameter(view));
  for (const View& view : entries("inputs")) tool.inputs.push_back(parse_input(view));
  for (const View& view : entries("outputs")) tool.outputs.push_back(parse_output(view));
  make_staged_names_unique(tool.outputs);

  if (const auto resources = map.find("resources")) {
    tool.resources = parse_resources(*resources, names_for_resources(tool));
    tool.facts = facts_in(tool);
  }

  std::set<std::string> single = names;
  for (const auto& input : tool.inputs) {
    if (input.many) single.erase(input.name);
  }
  single.insert("tool_dir");
  if (const auto environment = map.find("environment")) {
    for (const View& entry : environment->map().entries()) check_placeholders(entry, single);
    tool.environment = environment->text_map();
  }
  if (const auto container = map.find("container")) parse_container(*container, single, tool);
  if (const auto split = map.find("split")) tool.split = parse_split(*split, tool);
  if (const auto service = map.find("service")) read_service(*service, single, tool);
  if (is_a_command(tool)) {
    // What another plugin's keys mean only that plugin knows; it is given the whole text.
    check_programs(map.get("command"), tool);
    map.finish();
  }
  return tool;
}

std::string checked_value(const ParameterDeclaration& parameter, const std::string& value) {
  if (value.find('\0') != std::string::npos)
    throw std::invalid_argument("must not hold a NUL byte");
  std::string result = value;
  if (parameter.type == Type::Integer) {
    if (!number_in<std::int64_t>(value)) {
      throw std::invalid_argument(
          fmt::format("must be a whole number, not '{}'", show_text(value, 40)));
    }
  } else if (parameter.type == Type::Number) {
    if (const auto number = number_in<double>(value); !number || !std::isfinite(*number)) {
      throw std::invalid_argument(fmt::format("must be a number, not '{}'", show_text(value, 40)));
    }
  } else if (parameter.type == Type::Boolean) {
    if (value == "true" || value == "yes" || value == "1") {
      result = "true";
    } else if (value == "false" || value == "no" || value == "0") {
      result = "false";
    } else {
      throw std::invalid_argument(
          fmt::format("must be true or false, not '{}'", show_text(value, 40)));
    }
  }
  const auto& choices = parameter.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), result) == choices.end()) {
    throw std::invalid_argument(
        fmt::format("must be one of {}, not '{}'", fmt::join(choices, ", "), show_text(value, 40)));
  }
  return result;
}

TaskService parse_service(const View& view, const std::string& tool) {
  MapView map = view.map();
  TaskService service;
  service.name = tool;
  if (const auto kind = map.find("kind")) {
    if (kind->one_of({"fork", "answer"}) == "answer") service.kind = TaskService::Kind::Answer;
  }
  const View command = map.get("command");
  service.argv = command.texts();
  if (service.argv.empty() || service.argv.front().empty()) command.fail("it names no program");
  if (const auto env = map.find("env")) service.variables = env->text_map();
  if (const auto memory = map.find("memory")) service.memory = memory->size();
  if (const auto idle = map.find("idle")) service.idle = milliseconds_of(*idle);
  if (const auto start = map.find("start")) service.start = milliseconds_of(*start);
  if (const auto requests = map.find("requests"))
    service.requests = count_of(*requests, kMostServiceRequests);
  const auto of_answers = [&](const char* key) {
    auto found = map.find(key);
    if (found && service.kind != TaskService::Kind::Answer)
      found->fail("it is for a service of 'kind: answer'");
    return found;
  };
  if (const auto batch = of_answers("batch"))
    service.batch = count_of(*batch, kLargestServiceBatch);
  if (const auto instances = of_answers("instances"))
    service.instances = count_of(*instances, kMostServiceInstances);
  map.finish();
  return service;
}

TaskService filled_service(TaskService service, const std::map<std::string, std::string>& values) {
  for (std::string& word : service.argv) word = fill_placeholders(word, values);
  return service;
}

}  // namespace hpcbatch
