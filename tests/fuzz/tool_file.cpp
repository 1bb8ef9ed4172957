// Files of tools, and the expressions in them.
#include "tools/tool_file.hpp"
#include "documents/view.hpp"
#include "fuzz/harness.hpp"
#include "tools/tool_resources.hpp"

#include <stdexcept>

HPCBATCH_HARNESS(tool_file, bytes) {
  try {
    const ToolFile tool = parse_tool(std::string(bytes), "/tools/t.yaml");
    check(tool.name == "t", "a tool has its file's name");
    check(tool.outputs.size() <= bytes.size(), "no more outputs than bytes");
    for (const OutputDeclaration& output : tool.outputs)
      check(!output.staged.empty() && output.staged.find('/') == std::string::npos,
            "an output is a file of the task's own directory");
    for (const ParameterDeclaration& parameter : tool.parameters) {
      if (!parameter.default_value) continue;
      checked_value(parameter, *parameter.default_value);
    }
  } catch (const DocumentError&) {
  }
  try {
    check_units(bytes, Measure::Bytes);
    const Expression expression(std::string(bytes), {"level", "input.size"}, {"input"});
    std::map<std::string, double> values{{"level", 3}, {"input.size", 1e9}};
    for (const std::string& name : expression.names()) values.emplace(name, 1);
    expression.evaluate(values);
  } catch (const std::invalid_argument&) {
  }
}
