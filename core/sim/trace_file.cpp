#include "sim/trace_file.hpp"

#include "sim/files/text_file.hpp"

#include <sstream>
#include <stdexcept>

namespace hpcbatch::sim {

foresight::Trace read_trace_file(const std::string& file, const std::string& partition) {
  std::istringstream in(text_of_file(file));
  try {
    return foresight::read_trace(in, partition);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument((file == "-" ? "standard input" : file) + ": " + error.what());
  }
}

}  // namespace hpcbatch::sim
