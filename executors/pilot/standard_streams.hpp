// What a command is told on a stream and answers on one, each as a whole.
#pragma once

#include "hpcbatch/result.hpp"

#include <string>

namespace hpcbatch::pilot {

Result<std::string> read_all(int from);
bool write_all(int to, const std::string& text);

}  // namespace hpcbatch::pilot
