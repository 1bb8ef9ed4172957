// How a data set is cut into parts, each the work of one task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::split {

/// Neighbours of the data set.
struct Part {
  std::string name;  ///< in the order of their names parts are in the order of the data set
  std::size_t first{0};
  std::size_t count{0};
  friend bool operator==(const Part&, const Part&) = default;
};

struct PartBounds {
  std::size_t files{1};    ///< of a part at most, one at least
  std::uint64_t bytes{0};  ///< of a part at most, but for a file that is larger alone; 0: no bound
};

/// Parts of files with these sizes, in their order.
std::vector<Part> cut_into_parts(const std::vector<std::uint64_t>& sizes, const PartBounds& bounds);

/// The same in two; only of a part of two files or more.
std::pair<Part, Part> halves_of(const Part& part);

}  // namespace hpcbatch::split
