// TOML as the same plain tree that the strict reader of YAML makes.
#pragma once

#include "documents/yaml.hpp"

#include <string>
#include <string_view>

namespace hpcbatch {

/// Reads a document of TOML 1.0 (https://toml.io/en/v1.0.0); its root is a map.  Numbers that have
/// a fraction, dates and times stay the letters that the author wrote; whole numbers are written in
/// decimals, so that 1_000 is 1000.  Throws DocumentError, also for what is over `limits`.  `file`
/// is only used in messages.
Node parse_toml(std::string_view text, const std::string& file, const DocumentLimits& limits = {});

}  // namespace hpcbatch
