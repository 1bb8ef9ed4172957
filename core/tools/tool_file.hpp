// A tool's YAML file: what the core reads of it.  The rest belongs to the plugin that the file
// names.
#pragma once

#include "documents/view.hpp"
#include "model/needs.hpp"
#include "model/task.hpp"
#include "tools/tool_resources.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

struct ParameterDeclaration {
  enum class Type { String, Integer, Number, Boolean };
  std::string name;
  Type type{Type::String};
  std::optional<std::string> default_value;  ///< without one the parameter must be given
  std::vector<std::string> choices;          ///< empty: any
  std::string description;
};

struct InputDeclaration {
  std::string name;
  bool many{false};  ///< a list of files
  bool optional{false};
  std::string description;
};

struct OutputDeclaration {
  std::string name;
  std::string staged;    ///< the file's name in the task's directory; no two outputs share one
  bool optional{false};  ///< the tool may leave it out, the request too
  std::string description;
};

/// What an expression wants to know of an input that only the tool's plugin can say.
struct AskedFact {
  std::string input;
  std::string fact;
  std::string place;  ///< as in ToolAmount
};

/// How a run of it may be cut into parts that run side by side.
struct SplitDeclaration {
  std::string input, output;  ///< of the tool: what is cut, and what is merged
  std::string cut;            ///< a tool that cuts a recording; empty: lists of files alone
  std::string merge;          ///< a tool that merges outputs; empty: none
};

struct ToolFile {
  std::string name;
  std::string version;
  std::string summary;
  std::string plugin{"command"};
  std::vector<ParameterDeclaration> parameters;
  std::vector<InputDeclaration> inputs;
  std::vector<OutputDeclaration> outputs;
  ToolResources resources;
  std::vector<AskedFact> facts;                    ///< of `resources`
  std::map<std::string, std::string> environment;  ///< may hold `{name}`
  std::string container;                           ///< may hold `{name}`
  std::optional<SplitDeclaration> split;
  std::optional<TaskService> service;  ///< its command may hold `{name}`
  ContainerTerms container_terms;      ///< its paths and variables may hold `{name}`
  std::string path;                    ///< of the file, absolute
  std::string
      directory;     ///< of the file: the value of the parameter `tool_dir`, which every tool has
  std::string text;  ///< the whole file: the plugin's configuration
};

/// Throws DocumentError.  `path` must be absolute; its last part must be `NAME.yaml` for the tool
/// NAME.
ToolFile parse_tool(const std::string& text, const std::string& path);

/// What a value of this parameter becomes; throws std::invalid_argument with what was expected.
std::string checked_value(const ParameterDeclaration& parameter, const std::string& value);

// The service of a tool's file: what is dear to start and stays for the tasks that come.

/// Named like its tool.  Throws DocumentError.
TaskService parse_service(const View& view, const std::string& tool);

/// With the request's values in the places of its command.
TaskService filled_service(TaskService service, const std::map<std::string, std::string>& values);

}  // namespace hpcbatch
