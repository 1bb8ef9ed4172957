// What is said between a service that answers and its workers: one JSON object a line, on the
// worker's standard input, which is a socket (docs/formats.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hpcbatch::pilot {

/// Bytes of names and values go as they are, also where they are no UTF-8.
struct RequestWords {
  std::string id;
  std::vector<std::string> argv;
  std::string directory;
  std::map<std::string, std::string> environment;  ///< what the worker's own does not say
};

/// With its end of line.
std::string batch_line(const std::vector<RequestWords>& requests);
std::string cancel_line(const std::string& id);

struct WorkerStarts {};
struct WorkerIsReady {};
struct WorkerRenews {};
struct WorkerOutput {
  std::string id;
  bool is_error{false};
  std::string text;
};
struct WorkerAnswer {
  std::string id;
  int exit_code{0};
};
struct NotUnderstood {
  std::string why;
};
using WorkerWord = std::variant<WorkerStarts, WorkerIsReady, WorkerRenews, WorkerOutput,
                                WorkerAnswer, NotUnderstood>;

/// Without its end of line.
WorkerWord read_word(std::string_view line);

}  // namespace hpcbatch::pilot
