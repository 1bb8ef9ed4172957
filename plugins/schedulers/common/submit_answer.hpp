// What sbatch and qsub answer, as far as it is read alike: SLURM has a qsub of its own, and sites put
// their words before either.
#pragma once

#include "hpcbatch/scheduler.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hpcbatch::submit_answer {

// Parts of texts, in lower case.

/// The request may have reached the server.
inline constexpr std::array<std::string_view, 8> kUnclear{"zero bytes were transmitted",
                                                          "message receive failure",
                                                          "(send failure)",
                                                          "(receive failure)",
                                                          "connection reset",
                                                          "broken pipe",
                                                          "transport endpoint",
                                                          "timed out"};
/// Of how many batch jobs there may be.
inline constexpr std::array<std::string_view, 2> kLimit{"job violates accounting/qos policy",
                                                        "maxjobcount limit"};
/// A limit on what one batch job asks for is not reached by having many.
inline constexpr std::array<std::string_view, 2> kPerJob{"perjob", "pernode"};
/// Not taken now, and may be later.
inline constexpr std::array<std::string_view, 7> kPassing{
    "rate limit exceeded",     "authentication credential", "cannot allocate memory",
    "no space left on device", "input/output error",        "try again",
    "quota exceeded"};

template <std::size_t N>
bool has_one_of(std::string_view text, const std::array<std::string_view, N>& phrases) {
  return std::any_of(phrases.begin(), phrases.end(), [&](std::string_view phrase) {
    return text.find(phrase) != std::string_view::npos;
  });
}

/// A shell says of a child that a signal ended it that it exited with this and the signal's number:
/// the request may have been under way.
inline constexpr int kSignalled = 128;

/// What a shell exits with that could not run the program, 126 or 127.
inline bool is_absent(int exit_code) {
  return exit_code == kSignalled - 2 || exit_code == kSignalled - 1;
}

/// How one batch system reads it.
struct Reading {
  std::string_view program;  ///< for people
  std::optional<std::string> (*number_in)(const std::string& line);
  std::string (*one_line)(const std::string& text);
  Refusal (*classify)(const CommandOutput& output);  ///< of one that failed without a number
};

/// The number, which alone is success.
inline std::variant<std::string, SubmitRefused> read(const CommandOutput& output,
                                                     const Reading& reading) {
  std::vector<std::string> numbers;
  std::istringstream lines(output.standard_output);
  for (std::string line; std::getline(lines, line);)
    if (auto number = reading.number_in(line)) numbers.push_back(std::move(*number));
  if (!output.timed_out && output.exit_code == 0) {
    // Two numbers: a banner has one in it, and nobody can say which.
    if (numbers.size() == 1) return numbers.front();
    return SubmitRefused{Refusal::Unclear,
                         std::string(reading.program) + " printed no number: " +
                             reading.one_line(output.standard_output + output.standard_error)};
  }
  std::string text = reading.one_line(output.standard_error);
  if (text.empty()) text = reading.one_line(output.standard_output);
  if (output.timed_out) {
    text = "no answer in time" + (text.empty() ? "" : ": " + text);
  } else if (text.empty()) {
    text = "exit " + std::to_string(output.exit_code);
  }
  // A site's own command may submit and then fail.
  return SubmitRefused{numbers.empty() ? reading.classify(output) : Refusal::Unclear, text};
}

}  // namespace hpcbatch::submit_answer
