// What plugins of tools have in common whose command is a list in the tool's file.
#pragma once

#include "hpcbatch/tool.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

// One entry of a tool's `command`: text with names in braces, taken apart once.

/// What a name in braces may be.
enum class Declared { Value, Input, OptionalInput, Inputs };

/// `{name}` is replaced, `{{` and `}}` are braces.  What a value holds is never looked at again,
/// and no shell sees it, but for `{name:q}`, which is quoted for one.  `{name:raw}` is `{name}`.
class Argument {
 public:
  /// Throws std::invalid_argument where a brace has no partner, a name is not declared, or a list
  /// of files is not an entry of its own.
  Argument(std::string_view text, const std::map<std::string, Declared>& declared);

  /// None where it names an optional input that was not given; one for each file of a list.
  void append_to(std::vector<std::string>& argv, const ToolRequest& request) const;

 private:
  struct Piece {
    std::string text;
    bool is_name{false};
    bool is_quoted{false};
  };
  void check(const std::map<std::string, Declared>& declared) const;
  std::vector<Piece> pieces_;
};

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
