// What the engine asks of a tool's plugin in another process, and what that answers, as texts on the
// way between two programs of one build.
#pragma once

#include "hpcbatch/input_facts.hpp"
#include "hpcbatch/tool.hpp"

#include <chrono>
#include <cstddef>
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
std::string to_text(Answer answer);
// Each throws std::exception where the text is none.
Question question_of(std::string_view text);
Answer answer_of(std::string_view text);

// Texts on a socket, one after another: four bytes of length, the most significant first, and the
// text.

using FrameDeadline = std::chrono::steady_clock::time_point;

/// A list of a hundred thousand inputs has room.
inline constexpr std::size_t kLongestFrame = std::size_t{64} << 20U;

/// False: the other side is gone, does not read in time, or the text is longer than may be.
bool send_frame(int socket, std::string_view text, std::optional<FrameDeadline> deadline = {});
/// Nothing: the other side is gone, sent nothing whole in time, or no frame.
std::optional<std::string> receive_frame(int socket, std::optional<FrameDeadline> deadline = {});

}  // namespace hpcbatch::tool_host
