// What a tool's resources want to know of its inputs and only the tool's plugin can say.
#pragma once

#include "hpcbatch/tool.hpp"
#include "tools/tool_file.hpp"

#include <map>
#include <string>

namespace hpcbatch {

/// Throws std::runtime_error where the file asks for a fact that its plugin does not know.
void check_facts(const ToolFile& tool, const Tool& plugin);

/// By `INPUT.FACT`: those that are asked for, 0 of an input that was not given.  Asks the plugin, which
/// reads files; throws what that throws, and as `check_facts` does.
std::map<std::string, double> facts_of(const ToolFile& tool, const Tool& plugin,
                                       const ToolRequest& request);

}  // namespace hpcbatch
