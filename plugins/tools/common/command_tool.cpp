#include "command_tool.hpp"

#include "hpcbatch/shell_quote.hpp"

#include <yaml-cpp/yaml.h>

#include <stdexcept>

namespace hpcbatch {

Argument::Argument(std::string_view text, const std::map<std::string, Declared>& declared) {
  pieces_.emplace_back();
  while (!text.empty()) {
    if (text.starts_with("{{") || text.starts_with("}}")) {
      pieces_.back().text += text.front();
      text.remove_prefix(2);
    } else if (text.front() == '{' || text.front() == '}') {
      const auto end = text.find('}');
      if (text.front() == '}' || end == std::string_view::npos) {
        throw std::invalid_argument("a brace has no partner; write {{ or }} for the brace itself");
      }
      std::string_view name = text.substr(1, end - 1);
      const bool is_quoted = name.ends_with(":q");
      for (const std::string_view form : {":q", ":raw"}) {
        if (name.ends_with(form)) name.remove_suffix(form.size());
      }
      pieces_.push_back({std::string(name), true, is_quoted});
      pieces_.emplace_back();
      text.remove_prefix(end + 1);
    } else {
      pieces_.back().text += text.front();
      text.remove_prefix(1);
    }
  }
  std::erase_if(pieces_, [](const Piece& piece) { return !piece.is_name && piece.text.empty(); });
  check(declared);
}

void Argument::check(const std::map<std::string, Declared>& declared) const {
  for (const Piece& piece : pieces_) {
    if (!piece.is_name) continue;
    const auto known = declared.find(piece.text);
    if (known == declared.end()) {
      throw std::invalid_argument(
          "{" + piece.text + "} is not declared; it must be a parameter, an input or an output");
    }
    if (known->second == Declared::Inputs && pieces_.size() > 1 && !piece.is_quoted) {
      throw std::invalid_argument("{" + piece.text +
                                  "} is a list of files and must be an entry of its own, or {" +
                                  piece.text + ":q} in a program of a shell");
    }
  }
}

namespace {

/// Of an input that was not given: none.
std::vector<std::string> values_of(const std::string& name, const ToolRequest& request) {
  if (const auto value = request.parameters.find(name); value != request.parameters.end())
    return {value->second};
  if (const auto output = request.outputs.find(name); output != request.outputs.end())
    return {output->second};
  std::vector<std::string> paths;
  if (const auto input = request.inputs.find(name); input != request.inputs.end()) {
    for (const InputFile& file : input->second) paths.push_back(file.path);
  }
  return paths;
}

}  // namespace

void Argument::append_to(std::vector<std::string>& argv, const ToolRequest& request) const {
  if (pieces_.size() == 1 && pieces_.front().is_name && !pieces_.front().is_quoted) {
    const auto values = values_of(pieces_.front().text, request);  // perhaps a list of files
    argv.insert(argv.end(), values.begin(), values.end());
    return;
  }
  std::string argument;
  for (const Piece& piece : pieces_) {
    if (!piece.is_name) {
      argument += piece.text;
      continue;
    }
    const auto values = values_of(piece.text, request);
    if (values.empty()) return;  // an optional input that was not given
    argument += piece.is_quoted ? shell_quoted(values) : values.front();
  }
  argv.push_back(std::move(argument));
}

namespace {

std::runtime_error at(const YAML::Node& node, const std::string& what) {
  return std::runtime_error("line " + std::to_string(node.Mark().line + 1) + ": " + what);
}

Declared kind_of_input(const YAML::Node& declaration) {
  if (!declaration.IsMap()) return Declared::Input;
  if (declaration["type"] && declaration["type"].as<std::string>("") == "files")
    return Declared::Inputs;
  return declaration["optional"] && declaration["optional"].as<bool>(false)
             ? Declared::OptionalInput
             : Declared::Input;
}

}  // namespace

CommandTool::CommandTool(const char* config_yaml) {
  const YAML::Node file = YAML::Load(config_yaml);
  if (!file.IsMap()) throw std::runtime_error("a tool's file must be a map of keys to values");
  summary_ = file["summary"] ? file["summary"].as<std::string>("") : "";
  declared_["tool_dir"] = Declared::Value;
  for (const auto& parameter : file["parameters"])
    declared_[parameter.first.as<std::string>()] = Declared::Value;
  for (const auto& output : file["outputs"])
    declared_[output.first.as<std::string>()] = Declared::Value;
  for (const auto& input : file["inputs"]) {
    const auto name = input.first.as<std::string>();
    declared_[name] = kind_of_input(input.second);
    const auto& optional = input.second["optional"];
    if (!input.second.IsMap() || !optional || !optional.as<bool>(false)) required_.push_back(name);
  }

  const YAML::Node command = file["command"];
  if (!command)
    throw std::runtime_error("'command' is missing: the program and its arguments as a list");
  if (!command.IsSequence() || command.size() == 0) {
    throw at(command, "'command' must be a list, one entry for one argument");
  }
  for (const YAML::Node& entry : command) {
    if (!entry.IsScalar()) throw at(entry, "an entry of 'command' must be a text");
    try {
      command_.emplace_back(entry.Scalar(), declared_);
    } catch (const std::invalid_argument& e) {
      throw at(entry, e.what());
    }
  }
}

void CommandTool::validate(const ToolRequest& request) const {
  for (const auto& [name, kind] : declared_) {
    if (kind == Declared::Value && !request.parameters.contains(name) &&
        !request.outputs.contains(name)) {
      throw std::invalid_argument("the request has no '" + name + "'");
    }
  }
  for (const std::string& name : required_) {
    const auto files = request.inputs.find(name);
    if (files == request.inputs.end() || files->second.empty()) {
      throw std::invalid_argument("the request has no input '" + name + "'");
    }
  }
  for (const auto& [name, files] : request.inputs) {
    const auto known = declared_.find(name);
    if (known == declared_.end() || known->second == Declared::Value) {
      throw std::invalid_argument("the tool has no input '" + name + "'");
    }
    if (known->second != Declared::Inputs && files.size() != 1) {
      throw std::invalid_argument("input '" + name + "' takes one file");
    }
  }
}

ToolTask CommandTool::render(const ToolRequest& request) const {
  validate(request);
  ToolTask task;
  for (const Argument& argument : command_) argument.append_to(task.argv, request);
  if (task.argv.empty()) throw std::invalid_argument("nothing of the command is left");
  return task;
}

}  // namespace hpcbatch
