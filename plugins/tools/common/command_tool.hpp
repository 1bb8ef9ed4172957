// What plugins of tools have in common whose command is a list in the tool's file.
#pragma once

#include "argument.hpp"

#include "hpcbatch/tool.hpp"

#include <map>
#include <string>
#include <vector>

namespace hpcbatch {

/// Fills names in; the file's other keys are the core's.
class CommandTool : public Tool {
 public:
  explicit CommandTool(const char* config_yaml);

  ToolDescription describe() const override { return {.summary = summary_}; }
  void validate(const ToolRequest& request) const override;
  ToolTask render(const ToolRequest& request) const override;

 private:
  std::string summary_;
  std::map<std::string, Declared> declared_;
  std::vector<std::string> required_;
  std::vector<Argument> command_;
};

}  // namespace hpcbatch
