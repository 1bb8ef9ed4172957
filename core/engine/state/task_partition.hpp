// Where the tasks of one array stand, save those in the queue.
#pragma once

#include "model/ids.hpp"
#include "model/index_set.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace hpcbatch {

/// A set of indices for each place.  A single task ({0}) costs no sets: most of a million are such.
class TaskPartition {
 public:
  enum class Place : std::uint8_t {
    Blocked,  ///< waits for other tasks
    Held,     ///< by its user
    Leased,   ///< with a pilot
    Ok,       ///< has ended
    NotOk     ///< has ended
  };
  using enum Place;

  explicit TaskPartition(const IndexSet& all);

  /// Every index the array ever had.
  const IndexSet& all() const { return many_ ? many_->all : kOnly; }
  const IndexSet& in(Place place) const;
  const IndexSet& blocked() const { return in(Blocked); }
  const IndexSet& held() const { return in(Held); }
  const IndexSet& leased() const { return in(Leased); }
  const IndexSet& ok() const { return in(Ok); }
  const IndexSet& not_ok() const { return in(NotOk); }
  /// Those that have not ended.
  IndexSet open() const;
  bool is_over() const;

  void add(Place place, const IndexSet& indices);
  void remove(Place place, const IndexSet& indices);

  static constexpr std::size_t kPlaces = 5;

 private:
  struct Many {
    IndexSet all;
    std::array<IndexSet, kPlaces> in;
  };
  static const IndexSet kOnly;
  static const IndexSet kNone;

  std::unique_ptr<Many> many_;
  std::uint8_t only_in_{kPlaces};  ///< place of a single task; kPlaces: none of these
};

// How long the files of an array's tasks are on their way to where these run.

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
