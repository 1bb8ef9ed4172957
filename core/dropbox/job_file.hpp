// What a client writes into `X.job`.
#pragma once

#include "documents/node.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch {

/// The maps keep the order of the file; values are the text that the client wrote (`010` is `010`).
struct JobFile {
  using Map = std::vector<std::pair<std::string, std::string>>;
  std::string script;  ///< a template or a tool
  Map args;
  Map inputs;     ///< key to absolute path
  Map outputs;    ///< key to absolute path
  Node document;  ///< all of it, unknown keys too, without the nodes `hpc` and `job`, which are
                  ///< ours to write
  bool has_ours{false};  ///< it held `hpc` or `job`, as the documents do that we write
  std::vector<std::string> warnings;
};

/// Throws DocumentError, also for a file that is still being written: whoever calls gives it time.
JobFile parse_job(std::string_view text, const std::string& file);

/// As `parse_job`, for a document that was read before.
JobFile job_of(const Node& document, const std::string& file);

}  // namespace hpcbatch
