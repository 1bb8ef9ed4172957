// What the user asked for of `split`.
#pragma once

#include <cstdint>
#include <string>

namespace hpcbatch {

/// Beside what is said of each part (WorkOptions).
struct SplitOptions {
  std::string inputs;     ///< file with a path a line, `-` for standard input; empty: a recording
  std::string recording;  ///< to be cut by the tool's own means; empty: inputs
  std::uint32_t files_per_task{1};
  std::string bytes_per_task;  ///< a size; empty: no bound
  std::string reuse;           ///< file with paths that every part gets; empty: none
  std::uint32_t pieces{0};     ///< of a recording; 0: by their length
  std::string piece_length;    ///< a duration
  std::string merge;           ///< what a shell is given; empty: the tool's, or nothing is merged
  std::uint32_t merge_at_once{100};
  std::string result;  ///< file
  std::string parts;   ///< folder; empty: beside the result
  bool keep_parts{false};
  bool json{false};
};

}  // namespace hpcbatch
