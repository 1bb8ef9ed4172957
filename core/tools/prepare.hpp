// Turns a request for a tool into the task to run: checked against the tool's file, its needs
// computed, its command rendered by the tool's plugin.
#pragma once

#include "hpcbatch/result.hpp"
#include "hpcbatch/tool.hpp"
#include "model/needs.hpp"
#include "tools/tool_file.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// What a user asks of a tool.  Whoever builds it has looked at the inputs: size and time of change
/// are of the file as it is now.  All paths are absolute.
struct ToolCall {
  std::string tool;
  std::map<std::string, std::string> parameters;
  std::map<std::string, std::vector<InputFile>> inputs;
  std::map<std::string, std::string> outputs;  ///< where each output is to lie in the end
};

struct RenderedOutput {
  std::string name;
  std::string staged;       ///< the file's name below the task's directory
  std::string destination;  ///< empty: nobody wants it
  bool optional{false};     ///< the task may end without it
  friend bool operator==(const RenderedOutput&, const RenderedOutput&) = default;
};

struct RenderedTask {
  ToolTask task;  ///< environment and container of the tool's file are already in it
  ContainerTerms container_terms;  ///< of the tool's file
  Needs needs;  ///< of the tool's file, and over that what the plugin says; the user's own go over
                ///< both
  std::vector<RenderedOutput> outputs;
  std::vector<InputFile> inputs;  ///< all of them: to be looked at again before the task starts
  std::uint64_t output_limit{0};  ///< of the tool's file
  std::optional<TaskService> service;  ///< of the tool's file
};

/// `directory` is the folder that the task will write its outputs to, or a text that stands for it
/// until the task starts; it is put into the command as it is.  `defaults` are the configuration's,
/// over those of the file. Pure but for the plugin's own code, whose exceptions become errors.
Result<RenderedTask> prepare(const ToolFile& tool, const Tool& plugin, const ToolCall& call,
                             const std::map<std::string, std::string>& defaults,
                             const std::string& directory);

}  // namespace hpcbatch
