#include "split/parts.hpp"

#include <algorithm>
#include <utility>

namespace hpcbatch::split {
namespace {

constexpr std::size_t kDigits = 6;

std::string name_of(std::size_t number) {
  std::string digits = std::to_string(number);
  return std::string(kDigits - std::min(kDigits, digits.size()), '0') + digits;
}

}  // namespace

std::vector<Part> cut_into_parts(const std::vector<std::uint64_t>& sizes,
                                 const PartBounds& bounds) {
  std::vector<Part> parts;
  std::uint64_t bytes = 0;
  for (std::size_t file = 0; file < sizes.size(); ++file) {
    const bool is_full =
        parts.empty() || parts.back().count >= std::max<std::size_t>(bounds.files, 1) ||
        (bounds.bytes != 0 && (bytes > bounds.bytes || sizes[file] > bounds.bytes - bytes));
    if (is_full) {
      parts.push_back({name_of(parts.size() + 1), file, 0});
      bytes = 0;
    }
    ++parts.back().count;
    bytes += sizes[file];
  }
  return parts;
}

std::pair<Part, Part> halves_of(const Part& part) {
  const std::size_t half = part.count / 2;
  return {{part.name + "a", part.first, half},
          {part.name + "b", part.first + half, part.count - half}};
}

}  // namespace hpcbatch::split
