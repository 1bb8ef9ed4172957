// What the engine asks of a tool's plugin in another process, and what that answers, as texts on the
// way between two programs of one build.
#pragma once

#include "hpcbatch/tool.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace hpcbatch::tool_host {

struct Question {
  enum class What { Describe, Validate, Render };
  What what{What::Describe};
  std::string plugin;
  std::string text;  ///< of the tool's file, which is the plugin's configuration
  ToolRequest request{};
};

/// The plugin's own words against it.
struct Objection {
  std::string text;
};
/// A description, nothing more than that the request is good, or a task.
using Answer = std::variant<ToolDescription, std::monostate, ToolTask, Objection>;

std::string to_text(const Question& question);
std::string to_text(const Answer& answer);
// Each throws std::exception where the text is none.
Question question_of(std::string_view text);
Answer answer_of(std::string_view text);

}  // namespace hpcbatch::tool_host
