#include "cli/parse/parse.hpp"

#include "documents/task_keys.hpp"
#include "documents/texts.hpp"

#include <hpcbatch/text.hpp>

#include <CLI/App.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace hpcbatch {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kNames = 24;  ///< columns of an option's name and type

/// Each of its lines; what is indented stays as it is, as a reader would type it.
std::string wrapped_lines(std::string_view text) {
  std::string out;
  for (const std::string_view line : lines_of(text)) {
    out += line.starts_with(' ') ? std::string(line) : wrapped(line, kWidth, 0, 0);
    out += '\n';
  }
  return out;
}

std::string row(const std::string& name, const std::string& description) {
  std::string out = "  " + name;
  if (description.empty()) return out + "\n";
  if (out.size() + 2 > kNames + 2)
    out += "\n" + std::string(kNames + 2, ' ');
  else
    out.resize(kNames + 2, ' ');
  return out + wrapped(description, kWidth, kNames + 2, kNames + 2) + "\n";
}

}  // namespace

std::string value_text(const CLI::Option& option) {
  std::string type = option.get_type_name();
  const auto colon = type.find(':');
  if (colon != std::string::npos && type.find('{', colon) == colon + 1) {
    std::string choices = type.substr(colon + 2, type.find('}') - colon - 2);
    std::replace(choices.begin(), choices.end(), ',', '|');
    return choices;
  }
  if (colon != std::string::npos) type.erase(colon);
  return type == "TEXT" ? "" : type;
}

std::string HelpText::make_option(const CLI::Option* option, bool is_positional) const {
  std::string name = is_positional ? option->get_name(true) : option->get_name(false, true);
  std::replace(name.begin(), name.end(), ',', ' ');
  const std::string type = value_text(*option);
  if (!type.empty()) name += " " + type;
  return row(name, option->get_description());
}

std::string HelpText::make_description(const CLI::App* verb) const {
  return wrapped_lines(verb->get_description());
}

std::string HelpText::make_footer(const CLI::App* verb) const {
  const std::string footer = verb->get_footer();
  return footer.empty() ? "" : "\n" + wrapped_lines(footer);
}

std::string task_file_help() {
  std::string out =
      R"(A file of tasks, for `hpcbatch submit --file FILE`: a list in YAML (.yaml), the
same in TOML (.toml, each as [[tasks]]), or one JSON object a line (.jsonl).

  - name: prepare
    command: [sh, -c, "echo ready > data"]
  - name: fit
    after: [prepare]
    items: [a.bam, b.bam]
    command: [fit, --data, data, "{}"]
    cpus: 2
    memory: 4G
    time: 1h

Each needs `command` or `tool`; all else may be left out. Paths count from the
current directory; what all have in common may be options of `submit`.

)";
  for (const TaskKey& key : task_keys()) {
    const std::string standard(key.standard);
    out += row(std::string(key.name) + ": " + std::string(key.example),
               std::string(key.says) + (standard.empty() ? "" : " (" + standard + ")"));
  }
  return out;
}

std::string HelpText::make_usage(const CLI::App* verb, std::string name) const {
  std::string usage = CLI::Formatter::make_usage(verb, std::move(name));
  const std::string said = verb->get_name();
  const bool takes_command = said == "run" || said == "submit" || said == "split";
  const std::size_t end = usage.find_last_not_of('\n') + 1;
  if (takes_command) usage.insert(end, " [-- COMMAND...]");
  return usage;
}

std::string HelpText::make_subcommand(const CLI::App* verb) const {
  return row(verb->get_name(), verb->get_description());
}

}  // namespace hpcbatch
