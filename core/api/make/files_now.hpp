// The files that a submission names, as they are when it is handed in.
#pragma once

#include "api/read/read_request.hpp"
#include "tools/tool_registry.hpp"

#include <map>
#include <string>
#include <vector>

namespace hpcbatch {

struct NamedFiles {
  std::vector<std::string> inputs;        ///< must be there
  std::vector<std::string> destinations;  ///< must be files where they are there
};

struct SeenFiles {
  std::map<std::string, InputFile> files;
  std::string refusal;  ///< the first that is not as it must be
};

/// Those that can be looked at while their user waits.
NamedFiles named_now(const SubmitRequest& request);
/// Blocks.
SeenFiles look_at(const NamedFiles& named);

}  // namespace hpcbatch
