// The drop boxes that an engine was told to watch while it ran, kept in a file for the next one.
#pragma once

#include "documents/configuration.hpp"

#include "hpcbatch/result.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

struct RememberedBoxes {
  std::vector<DropboxSettings> boxes;
  std::vector<std::string> warnings;  ///< what of the file could not be used
};

/// No boxes where there is no file.
RememberedBoxes read_remembered(const std::string& file);

/// On disk when it returns; the old file stays where it fails.
Result<void> write_remembered(const std::string& file, const std::vector<DropboxSettings>& boxes);

}  // namespace hpcbatch
