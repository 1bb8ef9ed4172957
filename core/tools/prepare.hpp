// Turns a request for a tool into the task to run: checked against the tool's file, its needs
// computed, its command rendered by the tool's plugin.
#pragma once

#include "hpcbatch/result.hpp"
#include "hpcbatch/tool.hpp"
#include "model/needs.hpp"
#include "tools/tool_file.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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

// What a tool's resources want to know of its inputs and only the tool's plugin can say.

/// Throws std::runtime_error where the file asks for a fact that its plugin does not know.
void check_facts(const ToolFile& tool, const Tool& plugin);

/// By `INPUT.FACT`: those that are asked for, 0 of an input that was not given.  Asks the plugin, which
/// reads files; throws what that throws, and as `check_facts` does.
std::map<std::string, double> facts_of(const ToolFile& tool, const Tool& plugin,
                                       const ToolRequest& request);

// `{name}` in a text of a tool's file.

/// The names within braces, without `:q` or `:raw`; `{{` and `}}` stand for braces themselves.  Throws
/// std::invalid_argument where a brace has no partner.
std::vector<std::string> find_placeholders(std::string_view text);

/// Puts the values in, once: what a value holds is not looked at again.  Each name must be in
/// `values`.  `{name:q}` is put in quotes for a shell.
std::string fill_placeholders(std::string_view text,
                              const std::map<std::string, std::string>& values);

/// Each name that is one as the characters that `misplaced_text` knows; what is none cannot hold more
/// than a word.
std::string mark_placeholders(std::string_view text,
                              const std::function<bool(const std::string& name)>& is_one);

}  // namespace hpcbatch
