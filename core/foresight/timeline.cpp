#include "foresight/timeline.hpp"

#include <algorithm>

namespace hpcbatch::foresight {

Timeline::Timeline(std::size_t slots, std::int32_t most_nodes)
    : free_(std::max<std::size_t>(slots, 1), 0),
      not_before_(static_cast<std::size_t>(std::max(most_nodes, 0)) + 1, 0) {}

void Timeline::reset(std::int32_t free_now) {
  std::fill(free_.begin(), free_.end(), 0);
  free_.front() = free_now;
  std::fill(not_before_.begin(), not_before_.end(), 0);
}

void Timeline::frees(std::size_t slot, std::int32_t nodes) {
  if (slot < free_.size()) free_[slot] += nodes;
}

void Timeline::settle() {
  for (std::size_t i = 1; i < free_.size(); ++i) free_[i] += free_[i - 1];
}

std::optional<std::size_t> Timeline::earliest(std::int32_t nodes, std::size_t slots) {
  if (nodes >= static_cast<std::int32_t>(not_before_.size())) return std::nullopt;
  std::uint32_t& first = not_before_[static_cast<std::size_t>(std::max(nodes, 0))];
  while (first < free_.size() && free_[first] < nodes) ++first;
  std::size_t from = first;
  for (std::size_t i = first; i < free_.size(); ++i) {
    if (free_[i] < nodes)
      from = i + 1;
    else if (i + 1 - from >= slots)
      return from;
  }
  return from < free_.size() ? std::optional(from) : std::nullopt;
}

void Timeline::take(std::size_t from, std::size_t slots, std::int32_t nodes) {
  const std::size_t until = std::min(free_.size(), from + slots);
  for (std::size_t i = from; i < until; ++i) free_[i] -= nodes;
}

}  // namespace hpcbatch::foresight
