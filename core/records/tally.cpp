#include "records/tally.hpp"

#include <chrono>
#include <cmath>

namespace hpcbatch::records {

std::int32_t day_of(Time time) {
  return static_cast<std::int32_t>(
      std::chrono::floor<std::chrono::days>(time).time_since_epoch().count());
}

void Tally::add(const Group& group, const Run& run, std::int32_t day) {
  if (!last_usage_ || last_.day != day || last_.kind != group.kind || last_.site != group.site ||
      last_.client != group.client) {
    last_ = {day, group.kind, group.site, group.client};
    last_usage_ = &usage_[last_];
    last_profile_ = &profiles_[group.kind];
  }
  records::add(*last_usage_, run, group.needs);
  records::add(*last_profile_, run, group.needs);
}

double weight_after(Duration age) {
  constexpr std::chrono::days kHalf{30};
  if (age <= Duration{}) return 1;
  return std::exp2(-std::chrono::duration<double>(age) / std::chrono::duration<double>(kHalf));
}

}  // namespace hpcbatch::records
