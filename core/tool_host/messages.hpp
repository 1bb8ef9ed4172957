// What the engine asks of a tool's plugin in another process, and what that answers, as texts on the
// way between two programs of one build.
#pragma once

#include "hpcbatch/input_facts.hpp"
#include "hpcbatch/tool.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hpcbatch::tool_host {

struct Question {
  enum class What { Describe, Validate, Render, Facts, FactsOf };
  What what{What::Describe};
  std::string plugin;
  std::string text;  ///< of the tool's file, which is the plugin's configuration
  ToolRequest request{};
  InputFile file{};  ///< whose facts are asked
};

/// The plugin's own words against it.
struct Objection {
  std::string text;
};
/// The facts that the plugin knows: none where it is no `InputFacts`.
using KnownFacts = std::vector<FactDescription>;
/// Those of one file.
using FactValues = std::map<std::string, double>;
/// `std::monostate`: nothing more than that the request is good.
using Answer =
    std::variant<ToolDescription, std::monostate, ToolTask, KnownFacts, FactValues, Objection>;

std::string to_text(const Question& question);
std::string to_text(const Answer& answer);
// Each throws std::exception where the text is none.
Question question_of(std::string_view text);
Answer answer_of(std::string_view text);

}  // namespace hpcbatch::tool_host
