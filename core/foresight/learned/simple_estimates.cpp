#include "foresight/learned/simple_estimates.hpp"

#include <algorithm>

namespace hpcbatch::foresight {
namespace {

/// Those whose waits are over, by their ends.
std::vector<std::size_t> rows_over(const Polls& polls, const std::vector<std::size_t>& rows,
                                   Seconds now) {
  const auto end_of = [&](std::size_t row) { return polls.jobs[row].polled + polls.waited[row]; };
  std::vector<std::size_t> over;
  for (const std::size_t row : rows)
    if (polls.jobs[row].polled < now && end_of(row) <= now) over.push_back(row);
  std::stable_sort(over.begin(), over.end(),
                   [&](std::size_t one, std::size_t other) { return end_of(one) < end_of(other); });
  return over;
}

double median_wait(std::vector<Seconds>& waits) {
  if (waits.empty()) return 0;
  const auto middle = waits.begin() + static_cast<std::ptrdiff_t>(waits.size() / 2);
  std::nth_element(waits.begin(), middle, waits.end());
  return static_cast<double>(*middle);
}

}  // namespace

WaitClass wait_class_of(const PolledJob& job) {
  const float limit = job.known[known_column("time_limit_sec")];
  if (limit <= static_cast<float>(4 * kHour)) return {job.partition, 0};
  return {job.partition, limit <= static_cast<float>(kDay) ? 1 : 2};
}

MedianWaits::MedianWaits(const Polls& polls, const std::vector<std::size_t>& rows, Seconds now) {
  std::vector<Seconds> all;
  std::map<WaitClass, std::vector<Seconds>> by_class;
  for (const std::size_t row : rows_over(polls, rows, now)) {
    all.push_back(polls.waited[row]);
    by_class[wait_class_of(polls.jobs[row])].push_back(polls.waited[row]);
  }
  of_all_ = median_wait(all);
  for (auto& [alike, waits] : by_class) of_class_[alike] = median_wait(waits);
}

double MedianWaits::of_class(const PolledJob& job) const {
  const auto found = of_class_.find(wait_class_of(job));
  return found == of_class_.end() ? of_all_ : found->second;
}

ClassHistories::ClassHistories(const Polls& polls, const std::vector<std::size_t>& rows,
                               Seconds now) {
  for (const std::size_t row : rows_over(polls, rows, now)) {
    of_all_.add(polls.waited[row]);
    of_class_[wait_class_of(polls.jobs[row])].add(polls.waited[row]);
  }
}

std::optional<WaitBound> ClassHistories::bound(const PolledJob& job) const {
  const auto found = of_class_.find(wait_class_of(job));
  if (found != of_class_.end())
    if (const auto own = found->second.bound()) return own;
  return of_all_.bound();
}

}  // namespace hpcbatch::foresight
