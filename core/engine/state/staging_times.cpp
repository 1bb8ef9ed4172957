#include "engine/state/staging_times.hpp"

#include <algorithm>
#include <iterator>

namespace hpcbatch {

void StagingTimes::arrived(const IndexSet& indices, Time now) {
  for (Coming& coming : coming_) {
    const IndexSet here = coming.indices.intersection(indices);
    if (here.empty()) continue;
    coming.indices.remove(here);
    for (const IndexRange& range : here.ranges()) {
      forget(range);
      took_[range.first] = {range.last, now - coming.since};
    }
  }
  std::erase_if(coming_, [](const Coming& coming) { return coming.indices.empty(); });
}

void StagingTimes::given_up(const IndexSet& indices) {
  for (Coming& coming : coming_) coming.indices.remove(indices);
  std::erase_if(coming_, [](const Coming& coming) { return coming.indices.empty(); });
}

void StagingTimes::forget(IndexRange range) {
  auto at = took_.upper_bound(range.first);
  if (at != took_.begin()) --at;
  while (at != took_.end() && at->first <= range.last) {
    const IndexRange old{at->first, at->second.last};
    const Duration time = at->second.time;
    if (old.last < range.first) {
      ++at;
      continue;
    }
    at = took_.erase(at);
    if (old.first < range.first) took_[old.first] = {range.first - 1, time};
    if (old.last > range.last) at = took_.insert(at, {range.last + 1, {old.last, time}});
  }
}

Duration StagingTimes::take(std::uint32_t index) {
  auto at = took_.upper_bound(index);
  if (at == took_.begin()) return {};
  --at;
  if (at->second.last < index) return {};
  const Duration time = at->second.time;
  forget({index, index});
  return time;
}

}  // namespace hpcbatch
