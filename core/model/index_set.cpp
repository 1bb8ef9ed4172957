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

// Each index of a stepped range is a range of its own: more of them in one text than this is a
// mistake that would fill memory.
constexpr std::uint64_t kMostSteps = 1'000'000;

// So few ranges are put in or taken out one by one; more of them in one walk over both sets.
constexpr std::size_t kFew = 4;

bool lies_higher(const IndexRange& a, const IndexRange& b) {
  return a.last > b.last;
}

bool touch(IndexRange a, IndexRange b) {
  return std::uint64_t{a.last} + 1 >= b.first && std::uint64_t{b.last} + 1 >= a.first;
}

}  // namespace

void IndexSet::Many::append(IndexRange range) {
  if (!ranges.empty() && std::uint64_t{range.last} + 1 >= ranges.back().first) {
    IndexRange& lowest = ranges.back();
    size -= size_of(lowest);
    lowest.first = std::min(lowest.first, range.first);
    size += size_of(lowest);
  } else {
    ranges.push_back(range);
    size += size_of(range);
  }
}

void IndexSet::Many::add(IndexRange range) {
  // Ranges lie in falling order; those that overlap or touch `range` are neighbours of each other.
  auto begin = std::partition_point(ranges.begin(), ranges.end(), [&](const IndexRange& r) {
    return std::uint64_t{r.first} > std::uint64_t{range.last} + 1;
  });
  auto end = begin;
  while (end != ranges.end() && std::uint64_t{end->last} + 1 >= range.first) {
    range.first = std::min(range.first, end->first);
    range.last = std::max(range.last, end->last);
    size -= size_of(*end);
    ++end;
  }
  size += size_of(range);
  if (begin == end) {
    ranges.insert(begin, range);
  } else {
    *begin = range;
    ranges.erase(begin + 1, end);
  }
}

void IndexSet::Many::remove(IndexRange range) {
  auto begin = std::partition_point(ranges.begin(), ranges.end(),
                                    [&](const IndexRange& r) { return r.first > range.last; });
  auto end = begin;
  IndexRange kept[2];
  std::ptrdiff_t count = 0;
  while (end != ranges.end() && end->last >= range.first) {
    size -= size_of(*end);
    if (end->last > range.last) kept[count++] = {range.last + 1, end->last};
    if (end->first < range.first) kept[count++] = {end->first, range.first - 1};
    ++end;
  }
  for (std::ptrdiff_t i = 0; i < count; ++i) size += size_of(kept[i]);
  const auto common = std::min(count, end - begin);
  std::copy(kept, kept + common, begin);
  if (count > common) {
    ranges.insert(begin + common, kept + common, kept + count);
  } else {
    ranges.erase(begin + common, end);
  }
}

IndexSet::IndexSet(const IndexSet& other)
    : one_(other.one_), many_(other.many_ ? std::make_unique<Many>(*other.many_) : nullptr) {}

IndexSet& IndexSet::operator=(const IndexSet& other) {
  return *this = IndexSet(other);
}

IndexSet::IndexSet(IndexSet&& other) noexcept
    : one_(std::exchange(other.one_, kNone)), many_(std::move(other.many_)) {}

IndexSet& IndexSet::operator=(IndexSet&& other) noexcept {
  one_ = std::exchange(other.one_, kNone);
  many_ = std::move(other.many_);
  return *this;
}

IndexSet::IndexSet(Many many) {
  if (many.ranges.size() == 1) {
    one_ = many.ranges.front();
  } else if (!many.ranges.empty()) {
    many_ = std::make_unique<Many>(std::move(many));
  }
}

IndexSet::Many& IndexSet::many() {
  if (!many_) {
    many_ = std::make_unique<Many>();
    if (one_ != kNone) many_->append(std::exchange(one_, kNone));
  }
  return *many_;
}

IndexSet IndexSet::of(std::vector<IndexRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), lies_higher);
  Many many;
  for (const IndexRange& range : ranges) {
    HPCBATCH_CHECK(range.first <= range.last);
    many.append(range);
  }
  return IndexSet(std::move(many));
}

std::span<const IndexRange> IndexSet::ranges() const {
  if (many_) return many_->ranges;
  return {&one_, one_ == kNone ? 0U : 1U};
}

std::uint64_t IndexSet::size() const {
  if (many_) return many_->size;
  return one_ == kNone ? 0 : size_of(one_);
}

bool operator==(const IndexSet& a, const IndexSet& b) {
  return std::ranges::equal(a.ranges(), b.ranges());
}

void IndexSet::add(IndexRange range) {
  HPCBATCH_CHECK(range.first <= range.last);
  if (empty()) {
    one_ = range;
  } else if (!many_ && touch(one_, range)) {
    one_ = {std::min(one_.first, range.first), std::max(one_.last, range.last)};
  } else {
    many().add(range);
  }
}

void IndexSet::add(const IndexSet& other) {
  const auto others = other.ranges();
  if (others.size() <= kFew) {
    // Its own ranges change while they are added to it.
    if (&other != this) std::ranges::for_each(others, [&](const IndexRange& range) { add(range); });
    return;
  }
  std::vector<IndexRange> all;
  const auto mine = ranges();
  all.reserve(mine.size() + others.size());
  std::merge(mine.begin(), mine.end(), others.begin(), others.end(), std::back_inserter(all),
             lies_higher);
  Many sum;
  for (const IndexRange& range : all) sum.append(range);
  *this = IndexSet(std::move(sum));
}

void IndexSet::remove(IndexRange range) {
  HPCBATCH_CHECK(range.first <= range.last);
  if (!many_ && (empty() || range.last < one_.first || one_.last < range.first)) return;
  if (!many_ && range.first > one_.first && range.last < one_.last) many();
  if (many_) {
    many_->remove(range);
    if (many_->ranges.empty()) many_.reset();
  } else if (range.first > one_.first) {
    one_.last = range.first - 1;
  } else if (range.last < one_.last) {
    one_.first = range.last + 1;
  } else {
    one_ = kNone;
  }
}

void IndexSet::remove(const IndexSet& other) {
  const auto others = other.ranges();
  if (others.size() <= kFew) {
    if (&other == this) {
      *this = {};
    } else {
      std::ranges::for_each(others, [&](const IndexRange& range) { remove(range); });
    }
    return;
  }
  Many kept;
  auto gone = others.begin();
  for (const IndexRange& range : ranges()) {
    while (gone != others.end() && gone->first > range.last) ++gone;
    // What is left of the range, from its top; the last of `gone` may reach into the next range as
    // well.
    std::uint64_t end = std::uint64_t{range.last} + 1;
    for (auto at = gone; at != others.end() && at->last >= range.first; ++at) {
      gone = at;
      if (at->last + std::uint64_t{1} < end)
        kept.append({at->last + 1, static_cast<std::uint32_t>(end - 1)});
      end = std::min<std::uint64_t>(end, at->first);
      if (end <= range.first) break;
    }
    if (end > range.first) kept.append({range.first, static_cast<std::uint32_t>(end - 1)});
  }
  *this = IndexSet(std::move(kept));
}

IndexSet IndexSet::intersection(const IndexSet& other) const {
  const auto mine = ranges();
  const auto others = other.ranges();
  if (others.size() < mine.size()) return other.intersection(*this);
  if (mine.size() == 1 && others.size() == 1) {
    const IndexRange a = mine.front();
    const IndexRange b = others.front();
    const IndexRange common{std::max(a.first, b.first), std::min(a.last, b.last)};
    return common.first <= common.last ? IndexSet(common) : IndexSet();
  }
  // Few ranges against many are looked up, so that a single index costs no walk over a million
  // gaps.
  Many result;
  auto b = others.begin();
  const bool few = mine.size() * 16 < others.size();
  for (const IndexRange& a : mine) {
    const auto lies_above = [&](const IndexRange& r) { return r.first > a.last; };
    b = few ? std::partition_point(b, others.end(), lies_above)
            : std::find_if_not(b, others.end(), lies_above);
    for (auto at = b; at != others.end() && at->last >= a.first; ++at) {
      const IndexRange common{std::max(a.first, at->first), std::min(a.last, at->last)};
      result.ranges.push_back(common);
      result.size += size_of(common);
    }
  }
  return IndexSet(std::move(result));
}

bool IndexSet::contains(std::uint32_t index) const {
  if (!many_) return one_.first <= index && index <= one_.last;
  const auto& all = many_->ranges;
  auto at = std::partition_point(all.begin(), all.end(),
                                 [&](const IndexRange& r) { return r.first > index; });
  return at != all.end() && at->last >= index;
}

std::uint32_t IndexSet::pop_first() {
  HPCBATCH_CHECK(!empty());
  IndexRange& lowest = many_ ? many_->ranges.back() : one_;
  const std::uint32_t index = lowest.first;
  if (!many_) {
    lowest.first == lowest.last ? void(one_ = kNone) : void(++lowest.first);
    return index;
  }
  if (lowest.first == lowest.last) {
    many_->ranges.pop_back();
  } else {
    ++lowest.first;
  }
  --many_->size;
  if (many_->ranges.empty()) many_.reset();
  return index;
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
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
      if (ranges.size() + steps >= kMostSteps) return std::nullopt;
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
  const auto ranges = set.ranges();
  for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
    if (!text.empty()) text += ',';
    text += std::to_string(range->first);
    if (range->last != range->first) text += '-' + std::to_string(range->last);
  }
  return text;
}

}  // namespace hpcbatch
