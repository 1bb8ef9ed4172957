// The text of a file, packed by gzip or not.
#pragma once

#include <string>

namespace hpcbatch::sim {

/// `-`: standard input.  Throws std::invalid_argument with one sentence that names the file.
std::string text_of_file(const std::string& file);

}  // namespace hpcbatch::sim
