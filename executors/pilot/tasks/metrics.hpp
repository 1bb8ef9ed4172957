// What a task says of itself beyond how it ended: one JSON object in a file that it is told of.
#pragma once

#include <string>

namespace hpcbatch::pilot {

/// In the task's own temporary folder.
std::string metrics_file(const std::string& temporary);

struct Metrics {
  std::string text;     ///< as the task wrote it; empty: nothing
  std::string trouble;  ///< why it is left out: more than 64 KB, no object, no file
};
/// Never waits: a pipe in its place is none.
Metrics read_metrics(const std::string& temporary);

}  // namespace hpcbatch::pilot
