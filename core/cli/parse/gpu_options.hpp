// What the command line says of GPUs, and of ways to run a task that differ by them.
#pragma once

#include "cli/parse/command.hpp"

#include <string>

namespace hpcbatch::detail {

/// A value of `--gpus`, into what was said before: of any kind, or by kind.  Throws
/// std::invalid_argument.
template <class Asked>
void add_gpus(const std::string& text, Asked& asked);
/// A value of `--gpus` as it is.  Throws std::invalid_argument.
std::string checked_gpus(const std::string& text);
/// `8.0`.  Throws std::invalid_argument.
std::string checked_capability(const std::string& text);
/// `gpus=a100:2,cpus=4`.  Throws std::invalid_argument.
WayOption parse_way(const std::string& text);

}  // namespace hpcbatch::detail
