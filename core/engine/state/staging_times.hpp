// How long the files of an array's tasks are on their way to where these run.
#pragma once

#include "model/index_set.hpp"
#include "model/time.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace hpcbatch {

class StagingTimes {
 public:
  /// Files of these were asked for.
  void began(IndexSet indices, Time now) { coming_.push_back({std::move(indices), now}); }
  /// Files of these have arrived; of tasks that have done so before, the last counts.
  void arrived(const IndexSet& indices, Time now);
  /// What was asked for does not come.
  void given_up(const IndexSet& indices);
  /// How long it took, once for each task; 0: not known, or there were none.
  Duration take(std::uint32_t index);
  /// Ranges that are remembered.
  std::size_t size() const { return coming_.size() + took_.size(); }

 private:
  struct Coming {
    IndexSet indices;
    Time since{};
  };
  struct Took {
    std::uint32_t last{};
    Duration time{};
  };
  void forget(IndexRange range);

  std::vector<Coming> coming_;          // in the order in which they were asked for
  std::map<std::uint32_t, Took> took_;  // by the first of neighbours; no two overlap
};

}  // namespace hpcbatch
