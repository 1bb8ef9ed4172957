#include "model/index_set.hpp"

#include "model/check.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

namespace hpcbatch {
namespace {

// Sizes are 64-bit: a range may hold 2^32 - 1 indices.
std::uint64_t size_of(IndexRange range) {
  return std::uint64_t{range.last} - range.first + 1;
}

// Each index of a stepped range is a range of its own: more of them than this is a mistake that
// would fill memory.
constexpr std::uint64_t kMostSteps = 1'000'000;

// So few ranges are put in or taken out one by one; more of them in one walk over both sets.
constexpr std::size_t kFew = 4;

bool lies_higher(const IndexRange& a, const IndexRange& b) {
  return a.last > b.last;
}

}  // namespace

void IndexSet::append(IndexRange range) {
  if (!ranges_.empty() && std::uint64_t{range.last} + 1 >= ranges_.back().first) {
    IndexRange& lowest = ranges_.back();
    size_ -= size_of(lowest);
    lowest.first = std::min(lowest.first, range.first);
    size_ += size_of(lowest);
  } else {
    ranges_.push_back(range);
    size_ += size_of(range);
  }
}

IndexSet IndexSet::of(std::vector<IndexRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), lies_higher);
  IndexSet set;
  for (const IndexRange& range : ranges) {
    HPCBATCH_CHECK(range.first <= range.last);
    set.append(range);
  }
  return set;
}

void IndexSet::add(IndexRange range) {
  HPCBATCH_CHECK(range.first <= range.last);
  // Ranges lie in falling order; those that overlap or touch `range` are neighbours of each other.
  auto touches_or_below = [&](const IndexRange& r) {
    return std::uint64_t{r.first} > std::uint64_t{range.last} + 1;
  };
  auto begin = std::partition_point(ranges_.begin(), ranges_.end(), touches_or_below);
  auto end = begin;
  while (end != ranges_.end() && std::uint64_t{end->last} + 1 >= range.first) {
    range.first = std::min(range.first, end->first);
    range.last = std::max(range.last, end->last);
    size_ -= size_of(*end);
    ++end;
  }
  size_ += size_of(range);
  if (begin == end) {
    ranges_.insert(begin, range);
  } else {
    *begin = range;
    ranges_.erase(begin + 1, end);
  }
}

void IndexSet::add(const IndexSet& other) {
  if (other.ranges_.size() <= kFew) {
    for (const IndexRange& range : other.ranges_) add(range);
    return;
  }
  std::vector<IndexRange> all;
  all.reserve(ranges_.size() + other.ranges_.size());
  std::merge(ranges_.begin(), ranges_.end(), other.ranges_.begin(), other.ranges_.end(),
             std::back_inserter(all), lies_higher);
  ranges_.clear();
  size_ = 0;
  for (const IndexRange& range : all) append(range);
}

void IndexSet::remove(IndexRange range) {
  HPCBATCH_CHECK(range.first <= range.last);
  auto begin = std::partition_point(ranges_.begin(), ranges_.end(),
                                    [&](const IndexRange& r) { return r.first > range.last; });
  auto end = begin;
  std::vector<IndexRange> kept;
  while (end != ranges_.end() && end->last >= range.first) {
    size_ -= size_of(*end);
    if (end->last > range.last) kept.push_back({range.last + 1, end->last});
    if (end->first < range.first) kept.push_back({end->first, range.first - 1});
    ++end;
  }
  for (const IndexRange& r : kept) size_ += size_of(r);
  const auto common = std::min<std::ptrdiff_t>(std::ssize(kept), end - begin);
  std::copy(kept.begin(), kept.begin() + common, begin);
  if (std::ssize(kept) > common) {
    ranges_.insert(begin + common, kept.begin() + common, kept.end());
  } else {
    ranges_.erase(begin + common, end);
  }
}

void IndexSet::remove(const IndexSet& other) {
  if (other.ranges_.size() <= kFew) {
    for (const IndexRange& range : other.ranges_) remove(range);
    return;
  }
  IndexSet kept;
  auto gone = other.ranges_.begin();
  for (const IndexRange& range : ranges_) {
    while (gone != other.ranges_.end() && gone->first > range.last) ++gone;
    // What is left of the range, from its top; the last of `gone` may reach into the next range as
    // well.
    std::uint64_t end = std::uint64_t{range.last} + 1;
    for (auto at = gone; at != other.ranges_.end() && at->last >= range.first; ++at) {
      gone = at;
      if (at->last + std::uint64_t{1} < end)
        kept.append({at->last + 1, static_cast<std::uint32_t>(end - 1)});
      end = std::min<std::uint64_t>(end, at->first);
      if (end <= range.first) break;
    }
    if (end > range.first) kept.append({range.first, static_cast<std::uint32_t>(end - 1)});
  }
  *this = std::move(kept);
}

IndexSet IndexSet::intersection(const IndexSet& other) const {
  if (other.ranges_.size() < ranges_.size()) return other.intersection(*this);
  // Few ranges against many are looked up, so that a single index costs no walk over a million
  // gaps.
  IndexSet result;
  auto b = other.ranges_.begin();
  const bool few = ranges_.size() * 16 < other.ranges_.size();
  for (const IndexRange& a : ranges_) {
    const auto lies_above = [&](const IndexRange& r) { return r.first > a.last; };
    b = few ? std::partition_point(b, other.ranges_.end(), lies_above)
            : std::find_if_not(b, other.ranges_.end(), lies_above);
    for (auto at = b; at != other.ranges_.end() && at->last >= a.first; ++at) {
      const IndexRange common{std::max(a.first, at->first), std::min(a.last, at->last)};
      result.ranges_.push_back(common);
      result.size_ += size_of(common);
    }
  }
  return result;
}

bool IndexSet::contains(std::uint32_t index) const {
  auto at = std::partition_point(ranges_.begin(), ranges_.end(),
                                 [&](const IndexRange& r) { return r.first > index; });
  return at != ranges_.end() && at->last >= index;
}

std::uint32_t IndexSet::pop_first() {
  HPCBATCH_CHECK(!ranges_.empty());
  IndexRange& lowest = ranges_.back();
  const std::uint32_t index = lowest.first;
  if (lowest.first == lowest.last) {
    ranges_.pop_back();
  } else {
    ++lowest.first;
  }
  --size_;
  return index;
}

std::optional<IndexSet> parse_index_set(std::string_view text) {
  std::vector<IndexRange> ranges;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](std::uint32_t& value) {
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc{} || value == 0xFFFFFFFFU) return false;
    at = stop;
    return true;
  };
  while (true) {
    std::uint32_t first = 0;
    if (!number(first)) return std::nullopt;
    std::uint32_t last = first;
    std::uint32_t step = 1;
    if (at != end && *at == '-') {
      ++at;
      if (!number(last) || last < first) return std::nullopt;
      if (at != end && *at == ':') {
        ++at;
        if (!number(step) || step == 0) return std::nullopt;
      }
    }
    if (step == 1) {
      ranges.push_back({first, last});
    } else {
      const std::uint64_t steps = (std::uint64_t{last} - first) / step;
      if (steps >= kMostSteps) return std::nullopt;
      for (std::uint64_t n = 0; n <= steps; ++n) {
        const auto index = static_cast<std::uint32_t>(first + n * step);
        ranges.push_back({index, index});
      }
    }
    if (at == end) return IndexSet::of(std::move(ranges));
    if (*at != ',') return std::nullopt;
    ++at;
  }
}

std::string to_string(const IndexSet& set) {
  std::string text;
  for (auto range = set.ranges().rbegin(); range != set.ranges().rend(); ++range) {
    if (!text.empty()) text += ',';
    text += std::to_string(range->first);
    if (range->last != range->first) text += '-' + std::to_string(range->last);
  }
  return text;
}

}  // namespace hpcbatch
