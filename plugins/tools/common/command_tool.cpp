#include "command_tool.hpp"

#include <yaml-cpp/yaml.h>

#include <stdexcept>

namespace hpcbatch {
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
