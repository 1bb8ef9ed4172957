// Another program's output, for so long as it may take.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

struct Ran {
  int status{0};  ///< as of waitpid(2)
  std::string out;
};
/// Environment and standard error are ours, no signal is blocked.  Nothing where it cannot be run,
/// or had not ended in time: it is killed then.
std::optional<Ran> run_in_time(const std::vector<std::string>& argv,
                               std::chrono::milliseconds time);

/// The same for several side by side.
struct Program {
  std::vector<std::string> argv;
  std::vector<std::string> variables;  ///< NAME=value, over our environment
};
std::vector<std::optional<Ran>> run_in_time(const std::vector<Program>& programs,
                                            std::chrono::milliseconds time);

}  // namespace hpcbatch
