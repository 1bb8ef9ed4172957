// The files that a task has made for others: checked when it has ended, moved to their destinations
// when the engine allows it; all of them or none, as far as file systems let.
#pragma once

#include "failure/failure.hpp"
#include "wire/wire.pb.h"

#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::wire {

/// Why outputs are not what they should be, or could not be moved.
struct OutputRefusal {
  Failure failure{Failure::EngineError};
  std::string message;
};

/// Each is there, or is optional, and is a regular file, reached through no link.
std::optional<OutputRefusal> check_outputs(const std::string& directory,
                                           const std::vector<Output>& outputs);

/// Without those that the task could and did leave out.
std::vector<Output> outputs_made(const std::string& directory, std::vector<Output> outputs);

/// Those that are published though the task has failed, as far as they are there.
std::vector<Output> outputs_of_failure(const std::string& directory, std::vector<Output> outputs);

/// May take long: large files are copied where a file system ends.  What it says with a refusal is
/// not published.
std::optional<OutputRefusal> publish_outputs(const std::string& directory,
                                             const std::vector<Output>& outputs);

}  // namespace hpcbatch::wire
