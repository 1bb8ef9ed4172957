// How a pilot starts the service that answers: its own program, with what the service's definition
// says as arguments.
#pragma once

#include "pilot/answering/request_dispatcher.hpp"

#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

struct AnsweringOptions {
  DispatchTerms terms;
  std::vector<std::string> command;  ///< of a worker
};

/// As `hpcbatch-pilot answering ...` gets them, without those two words; none where they are wrong.
std::optional<AnsweringOptions> read_answering_options(const std::vector<std::string>& arguments);

}  // namespace hpcbatch::pilot
