#include "tools/prepare.hpp"

#include "documents/texts.hpp"
#include "hpcbatch/input_facts.hpp"
#include "hpcbatch/shell_quote.hpp"
#include "programs/program_words.hpp"
#include "tools/tool_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>
#include <stdexcept>

namespace hpcbatch {
namespace {

/// What is wrong with the request; becomes an Error in `prepare`.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class Declarations>
std::vector<std::string> names_of(const Declarations& declarations) {
  std::vector<std::string> names;
  names.reserve(declarations.size());
  for (const auto& declaration : declarations) names.push_back(declaration.name);
  return names;
}

template <class Given, class Declarations>
void refuse_unknown(const Given& given, const Declarations& declarations, std::string_view what) {
  const std::vector<std::string> known = names_of(declarations);
  for (const auto& [name, value] : given) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Refused(fmt::format("it has no {} '{}'{}", what, show_text(name, 40),
                                spelling_hint(name, known)));
    }
  }
}

/// A path that means one place, so that two spellings of it are seen to be the same.
std::string plain_path(const std::string& path, std::string_view what, const std::string& name) {
  if (!path.starts_with('/') || path.find('\0') != std::string::npos) {
    throw Refused(
        fmt::format("{} '{}' must be an absolute path, not '{}'", what, name, show_text(path)));
  }
  return std::filesystem::path(path).lexically_normal().string();
}

std::map<std::string, std::string> parameters_of(
    const ToolFile& tool, const ToolCall& call,
    const std::map<std::string, std::string>& defaults) {
  refuse_unknown(call.parameters, tool.parameters, "parameter");
  refuse_unknown(defaults, tool.parameters, "parameter (the configuration gives it a default)");
  std::map<std::string, std::string> values;
  for (const ParameterDeclaration& parameter : tool.parameters) {
    const auto given = call.parameters.find(parameter.name);
    const auto configured = defaults.find(parameter.name);
    try {
      if (given != call.parameters.end()) {
        values[parameter.name] = checked_value(parameter, given->second);
      } else if (configured != defaults.end()) {
        values[parameter.name] = checked_value(parameter, configured->second);
      } else if (parameter.default_value) {
        values[parameter.name] = *parameter.default_value;
      } else {
        throw std::invalid_argument("must be given; it has no default");
      }
    } catch (const std::invalid_argument& e) {
      throw Refused(fmt::format("parameter '{}' {}", parameter.name, e.what()));
    }
  }
  values["tool_dir"] = tool.directory;
  return values;
}

std::map<std::string, std::vector<InputFile>> inputs_of(const ToolFile& tool,
                                                        const ToolCall& call) {
  refuse_unknown(call.inputs, tool.inputs, "input");
  std::map<std::string, std::vector<InputFile>> inputs;
  for (const InputDeclaration& input : tool.inputs) {
    const auto given = call.inputs.find(input.name);
    if (given == call.inputs.end() || given->second.empty()) {
      if (!input.optional) throw Refused(fmt::format("input '{}' must be given", input.name));
      continue;
    }
    if (!input.many && given->second.size() != 1) {
      throw Refused(
          fmt::format("input '{}' takes one file, not {}", input.name, given->second.size()));
    }
    for (const InputFile& file : given->second) plain_path(file.path, "input", input.name);
    inputs.insert(*given);
  }
  return inputs;
}

std::vector<RenderedOutput> outputs_of(const ToolFile& tool, const ToolCall& call) {
  refuse_unknown(call.outputs, tool.outputs, "output");
  std::map<std::string, std::string> taken;
  for (const auto& [name, files] : call.inputs) {
    for (const InputFile& file : files)
      taken.emplace(plain_path(file.path, "input", name), "input '" + name + "'");
  }
  std::vector<RenderedOutput> outputs;
  for (const OutputDeclaration& output : tool.outputs) {
    RenderedOutput rendered{.name = output.name,
                            .staged = output.staged,
                            .destination = {},
                            .optional = output.optional};
    if (const auto given = call.outputs.find(output.name); given != call.outputs.end()) {
      rendered.destination = given->second;
      const std::string path = plain_path(given->second, "output", output.name);
      if (path.ends_with('/'))
        throw Refused(fmt::format("output '{}' must be a file, not a folder", output.name));
      const auto [at, is_free] = taken.emplace(path, "output '" + output.name + "'");
      if (!is_free) {
        throw Refused(fmt::format("output '{}' and {} are the same file: {}", output.name,
                                  at->second, show_text(path)));
      }
    } else if (!output.optional) {
      throw Refused(fmt::format("output '{}' must be given a destination", output.name));
    }
    outputs.push_back(std::move(rendered));
  }
  return outputs;
}

double number_of(const std::string& text) {
  if (text == "true") return 1;
  double value = 0;  // also what "false" is
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::map<std::string, double> amounts_of(const ToolFile& tool, const ToolRequest& request) {
  std::map<std::string, double> values{{"inputs.size", 0}, {"inputs.count", 0}};
  for (const auto& parameter : tool.parameters) {
    if (parameter.type != ParameterDeclaration::Type::String) {
      values[parameter.name] = number_of(request.parameters.at(parameter.name));
    }
  }
  for (const auto& input : tool.inputs) {
    double size = 0;
    double count = 0;
    if (const auto given = request.inputs.find(input.name); given != request.inputs.end()) {
      for (const InputFile& file : given->second) size += static_cast<double>(file.size);
      count = static_cast<double>(given->second.size());
    }
    values[input.name + ".size"] = size;
    values[input.name + ".count"] = count;
    values["inputs.size"] += size;
    values["inputs.count"] += count;
  }
  return values;
}

std::string filled_path(const std::string& text, const std::map<std::string, std::string>& values) {
  std::string path = fill_placeholders(text, values);
  if (!path.starts_with('/') || path.find_first_of(":,") != std::string::npos) {
    throw Refused(fmt::format(
        "'{}' cannot be shown in the container: it must be an absolute path without ':' and ','",
        show_text(path)));
  }
  return path;
}

ContainerTerms filled_terms(ContainerTerms terms,
                            const std::map<std::string, std::string>& values) {
  for (ContainerBind& bind : terms.binds) {
    bind.from = filled_path(bind.from, values);
    bind.to = filled_path(bind.to, values);
  }
  for (auto& [name, value] : terms.variables) value = fill_placeholders(value, values);
  return terms;
}

/// What the tool's file says of the task, where the plugin has not said it.
void add_surroundings(const ToolFile& tool, const ToolRequest& request, RenderedTask& rendered) {
  ToolTask& task = rendered.task;
  std::map<std::string, std::string> values = request.parameters;
  values.insert(request.outputs.begin(), request.outputs.end());
  for (const auto& input : tool.inputs) {
    const auto given = request.inputs.find(input.name);
    values[input.name] = given == request.inputs.end() ? "" : given->second.front().path;
  }
  for (const auto& [name, value] : tool.environment) {
    task.environment.emplace(name, fill_placeholders(value, values));
  }
  if (task.container.empty()) task.container = fill_placeholders(tool.container, values);
  rendered.container_terms = filled_terms(tool.container_terms, values);
  if (!tool.service || !task.container.empty()) return;
  rendered.service = filled_service(*tool.service, values);
  for (const auto& [name, value] : tool.environment)
    rendered.service->variables.emplace(name, fill_placeholders(value, values));
}

void take_plugins_needs(const ToolNeeds& said, Needs& needs) {
  if (said.cpus) needs.amounts.set(kCpus, Amount::of_fraction(*said.cpus));
  if (said.memory) needs.amounts.set(kMemory, Amount::of(static_cast<std::int64_t>(*said.memory)));
  if (said.disk) needs.amounts.set(kDisk, Amount::of(static_cast<std::int64_t>(*said.disk)));
  if (said.time) needs.time = *said.time;
  if (said.gpus.empty()) return;
  const Resources before = needs.amounts;
  for (const auto& [name, amount] : before.entries()) {
    if (name == kAnyGpu || name.starts_with(kGpuPrefix)) needs.amounts.set(name, {});
  }
  for (const auto& [kind, count] : said.gpus) {
    const std::string name = kind.empty() ? std::string(kAnyGpu) : std::string(kGpuPrefix) + kind;
    needs.amounts.set(name, Amount::of_fraction(count));
  }
}

void check_plugins_needs(const ToolNeeds& said) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 49;
  bool is_sane =
      (!said.cpus || (*said.cpus > 0 && *said.cpus <= 65536)) &&
      (!said.memory || *said.memory <= kMostBytes) && (!said.disk || *said.disk <= kMostBytes) &&
      (!said.time || (said.time->count() > 0 && *said.time <= std::chrono::hours{24 * 366}));
  for (const auto& [kind, count] : said.gpus) is_sane = is_sane && count >= 0 && count <= 1024;
  if (!is_sane) throw Refused("its plugin asks for an amount that no machine has");
}

using OfMany = FactDescription::OfMany;
using KnownFacts = std::map<std::string, OfMany>;

KnownFacts known_facts(const Tool& plugin) {
  KnownFacts known;
  if (const auto* facts = dynamic_cast<const InputFacts*>(&plugin)) {
    for (const FactDescription& fact : facts->facts()) known.emplace(fact.name, fact.of_many);
  }
  return known;
}

void check_asked(const ToolFile& tool, const KnownFacts& known) {
  std::vector<std::string> names{"size", "count"};
  for (const auto& [name, of_many] : known) names.push_back(name);
  for (const AskedFact& asked : tool.facts) {
    if (known.contains(asked.fact)) continue;
    throw std::runtime_error(
        fmt::format("{} uses '{}.{}', and what its plugin {} tells of an input is {}{}",
                    asked.place, asked.input, show_text(asked.fact, 40), tool.plugin,
                    fmt::join(names, ", "), spelling_hint(asked.fact, names)));
  }
}

double sane(double value, const AskedFact& asked, const InputFile& file) {
  if (std::isfinite(value) && value >= 0) return value;
  throw std::runtime_error(fmt::format("its plugin says that {} of {} is {:g}; mend the plugin",
                                       asked.fact, show_text(file.path), value));
}

/// Calls `literal` with pieces of plain text and `name` with each name in braces and its form, in
/// their order.
template <class Literal, class Name>
void walk(std::string_view text, Literal literal, Name name) {
  while (!text.empty()) {
    const auto brace = text.find_first_of("{}");
    literal(text.substr(0, brace));
    if (brace == std::string_view::npos) return;
    text.remove_prefix(brace);
    if (text.starts_with("{{") || text.starts_with("}}")) {
      literal(text.substr(0, 1));
      text.remove_prefix(2);
      continue;
    }
    const auto end = text.find('}');
    if (text.front() == '}' || end == std::string_view::npos) {
      throw std::invalid_argument("a brace has no partner; write {{ or }} for the brace itself");
    }
    std::string_view inner = text.substr(1, end - 1);
    const char form = take_form(inner);
    name(inner, form);
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Result<RenderedTask> prepare(const ToolFile& tool, const Tool& plugin, const ToolCall& call,
                             const std::map<std::string, std::string>& defaults,
                             const std::string& directory) {
  const auto refused = [&](std::string_view why) {
    return Error{Error::Kind::Rejected,
                 fmt::format("cannot use tool {}: {}", tool.name, show_text(why, 2000))};
  };
  try {
    ToolRequest request{.tool = tool.name,
                        .parameters = parameters_of(tool, call, defaults),
                        .inputs = inputs_of(tool, call),
                        .outputs = {}};
    RenderedTask rendered;
    rendered.outputs = outputs_of(tool, call);
    for (const RenderedOutput& output : rendered.outputs) {
      request.outputs[output.name] = directory + "/" + output.staged;
    }
    for (const auto& [name, files] : request.inputs) {
      rendered.inputs.insert(rendered.inputs.end(), files.begin(), files.end());
    }
    std::map<std::string, double> amounts = amounts_of(tool, request);
    amounts.merge(facts_of(tool, plugin, request));
    Result<Needs> needs = evaluate(tool.resources, amounts);
    if (!needs) return needs.error();
    rendered.needs = std::move(*needs);
    rendered.output_limit = tool.resources.output_limit;

    plugin.validate(request);
    rendered.task = plugin.render(request);
    if (rendered.task.argv.empty() || rendered.task.argv.front().empty()) {
      return refused(fmt::format("its plugin {} rendered an empty command", tool.plugin));
    }
    check_plugins_needs(rendered.task.needs);
    take_plugins_needs(rendered.task.needs, rendered.needs);
    add_surroundings(tool, request, rendered);
    return rendered;
  } catch (const std::exception& e) {
    return refused(e.what());
  } catch (...) {
    return refused(
        fmt::format("its plugin {} threw something that is no std::exception", tool.plugin));
  }
}

void check_facts(const ToolFile& tool, const Tool& plugin) {
  if (!tool.facts.empty()) check_asked(tool, known_facts(plugin));
}

std::map<std::string, double> facts_of(const ToolFile& tool, const Tool& plugin,
                                       const ToolRequest& request) {
  std::map<std::string, double> values;
  if (tool.facts.empty()) return values;
  const KnownFacts known = known_facts(plugin);
  check_asked(tool, known);
  std::map<std::string, std::vector<AskedFact>> by_input;
  for (const AskedFact& asked : tool.facts) {
    // Two amounts may use one.
    if (values.emplace(asked.input + "." + asked.fact, 0).second)
      by_input[asked.input].push_back(asked);
  }
  const auto& facts = dynamic_cast<const InputFacts&>(plugin);
  for (const auto& [input, wanted] : by_input) {
    const auto given = request.inputs.find(input);
    if (given == request.inputs.end()) continue;
    for (const InputFile& file : given->second) {
      const std::map<std::string, double> told = facts.facts_of(file);
      for (const AskedFact& asked : wanted) {
        const auto at = told.find(asked.fact);
        const double value = sane(at == told.end() ? std::nan("") : at->second, asked, file);
        double& all = values[input + "." + asked.fact];
        all = known.at(asked.fact) == OfMany::Sum ? all + value : std::max(all, value);
      }
    }
  }
  return values;
}

std::vector<std::string> find_placeholders(std::string_view text) {
  std::vector<std::string> names;
  walk(
      text, [](std::string_view) {},
      [&](std::string_view name, char) { names.emplace_back(name); });
  return names;
}

std::string fill_placeholders(std::string_view text,
                              const std::map<std::string, std::string>& values) {
  std::string result;
  walk(
      text, [&](std::string_view literal) { result += literal; },
      [&](std::string_view name, char form) {
        const std::string& value = values.at(std::string(name));
        result += form == kQuotedPlace ? shell_quoted(value) : value;
      });
  return result;
}

std::string mark_placeholders(std::string_view text,
                              const std::function<bool(const std::string& name)>& is_one) {
  std::string result;
  walk(
      text, [&](std::string_view literal) { result += without_marks(literal); },
      [&](std::string_view name, char form) {
        result += is_one(std::string(name)) ? std::string(1, form) : "1";
      });
  return result;
}

}  // namespace hpcbatch
