#include "engine/state/task_partition.hpp"

#include <algorithm>
#include <iterator>

namespace hpcbatch {

const IndexSet TaskPartition::kOnly = IndexRange{0, 0};
const IndexSet TaskPartition::kNone;

TaskPartition::TaskPartition(const IndexSet& all) {
  if (all != kOnly) many_ = std::make_unique<Many>(Many{.all = all, .in = {}});
}

const IndexSet& TaskPartition::in(Place place) const {
  const auto number = static_cast<std::uint8_t>(place);
  if (many_) return many_->in[number];
  return only_in_ == number ? kOnly : kNone;
}

IndexSet TaskPartition::open() const {
  IndexSet open = all();
  open.remove(ok());
  open.remove(not_ok());
  return open;
}

bool TaskPartition::is_over() const {
  return ok().size() + not_ok().size() == all().size();
}

void TaskPartition::add(Place place, const IndexSet& indices) {
  const auto number = static_cast<std::uint8_t>(place);
  if (many_) {
    many_->in[number].add(indices);
  } else if (!indices.empty()) {
    only_in_ = number;
  }
}

void TaskPartition::remove(Place place, const IndexSet& indices) {
  const auto number = static_cast<std::uint8_t>(place);
  if (many_) {
    many_->in[number].remove(indices);
  } else if (only_in_ == number && indices.contains(0)) {
    only_in_ = kPlaces;
  }
}

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
