// What work of a class takes on a kind of GPU, and how fast it goes beside others.  Pure.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::fakegpu {

/// Alone on one GPU.
struct Cost {
  double seconds{0};
  std::uint64_t memory{0};  ///< bytes
  unsigned busy{100};       ///< percent of the time in which it keeps the GPU busy
};

/// A line for each: CLASS KIND SECONDS MEMORY-IN-MiB BUSY-PERCENT; `#` begins a comment.
using CostTable = std::map<std::pair<std::string, std::string>, Cost>;
/// Throws std::invalid_argument with the line that is none.
CostTable read_costs(std::istream& text);

/// The part of its own speed at which one goes that keeps a GPU busy for `own` percent, beside
/// others that do for `others` percent: what is left is shared, and taking turns costs a twentieth.
double speed_beside(unsigned own, unsigned others);

}  // namespace hpcbatch::fakegpu
