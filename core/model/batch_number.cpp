#include "model/batch_number.hpp"

#include <span>

namespace hpcbatch {
namespace {

std::uint64_t steps_in(const IndexSteps& some) {
  return (some.last - some.first) / some.step + 1;
}

/// Adds a single index, to the last steps where it goes on with them.
void add_single(std::vector<IndexSteps>& all, std::uint32_t index) {
  if (!all.empty()) {
    IndexSteps& before = all.back();
    const bool is_single = before.first == before.last;
    if (is_single || index - before.last == before.step) {
      before.step = index - before.last;
      before.last = index;
      return;
    }
  }
  all.push_back({index, index, 1});
}

}  // namespace

std::optional<std::uint32_t> batch_number(ArrayId array, std::uint64_t position) {
  constexpr std::uint64_t kMost = kLastBatchNumber - kBatchNumbers;
  if (array.value > kMost || position > kMost - array.value) return std::nullopt;
  return static_cast<std::uint32_t>(kBatchNumbers + array.value + position);
}

std::optional<ArrayId> id_of_batch_number(std::uint64_t number) {
  if (number <= kBatchNumbers || number > kLastBatchNumber) return std::nullopt;
  return ArrayId{number - kBatchNumbers};
}

std::uint64_t ids_taken(bool is_numbered, const IndexSet& indices) {
  return is_numbered && !indices.empty() ? indices.size() : 1;
}

std::vector<IndexSteps> steps_of(const IndexSet& indices) {
  std::vector<IndexSteps> all;
  const std::span<const IndexRange> ranges = indices.ranges();
  for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
    if (range->first == range->last)
      add_single(all, range->first);
    else
      all.push_back({range->first, range->last, 1});
  }
  return all;
}

std::optional<std::uint64_t> position_of(const std::vector<IndexSteps>& all, std::uint32_t index) {
  std::uint64_t before = 0;
  for (const IndexSteps& some : all) {
    if (index < some.first) break;
    if (index <= some.last) {
      const std::uint32_t beyond = index - some.first;
      if (beyond % some.step != 0) break;
      return before + beyond / some.step;
    }
    before += steps_in(some);
  }
  return std::nullopt;
}

std::optional<std::uint32_t> index_at(const std::vector<IndexSteps>& all, std::uint64_t position) {
  for (const IndexSteps& some : all) {
    const std::uint64_t size = steps_in(some);
    if (position < size) return static_cast<std::uint32_t>(some.first + position * some.step);
    position -= size;
  }
  return std::nullopt;
}

}  // namespace hpcbatch
