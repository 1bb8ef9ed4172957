#include "engine/state/task_partition.hpp"

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

}  // namespace hpcbatch
