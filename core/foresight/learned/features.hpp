// The inputs of an estimator: what is known of each job at the moment of its poll, and no more.
#pragma once

#include "foresight/learned/poll_file.hpp"
#include "foresight/wait_history.hpp"
#include "hpcbatch/estimator.hpp"
#include "hpcbatch/queue_history.hpp"
#include "hpcbatch/queue_watcher.hpp"
#include "hpcbatch/room_watcher.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch::foresight {

/// A row for each job, in their order: its own columns; how many jobs of the same poll are of its
/// shape, account and partition; what waits before it for what runs there; and, of jobs of earlier
/// polls, how many of the like have started in the three days before its poll, the median of their
/// waits, how many still wait, and for how long.  A wait enters from the moment on at which it was
/// over: whatever `waited` says of what comes later, the row is the same.
FeatureTable feature_table(const Polls& polls);

/// Of each job: how many of its poll are of its shape (partition, account, cpus and limit), itself too.
std::vector<std::size_t> crowds_of(const Polls& polls);

/// Of these rows of that table.
FeatureTable rows_of(const FeatureTable& table, const std::vector<std::size_t>& rows);

/// What can be learned at that moment from those of these rows that were polled before it: a wait
/// that is not over by then is pending, with what it has been so far.  `half_life`: a row that is so
/// much older than another counts half as much; without it all count alike.
TrainingTable training_table(const FeatureTable& table, const Polls& polls,
                             const std::vector<std::size_t>& rows, Seconds now,
                             std::optional<Seconds> half_life = {});

// What a queue shows at a moment, as inputs of an estimator: the same whether accounting tells of the
// past or a look of now.

/// Numbers of names, in the order in which they came.
class Numbers {
 public:
  Numbers() = default;
  explicit Numbers(const std::vector<std::string>& names);
  std::uint32_t of(const std::string& name);
  std::vector<std::string> names() const;

 private:
  std::map<std::string, std::uint32_t> known_;
};

/// A batch job of anybody that waits or runs at that moment.
struct PresentJob {
  std::uint32_t partition{0}, user{0};
  double cpus{1};
  double gpus{0};
  Seconds limit{0};
  std::optional<Seconds> submitted;  ///< nothing: not told
  std::optional<Seconds> started;    ///< nothing: it waits
};

/// One whose wait is to be told.
struct AskedJob {
  std::uint32_t partition{0}, user{0};
  double cpus{1}, gpus{0};
  Seconds limit{0};
};

/// Names of the columns.
std::vector<std::string> queue_feature_names();

/// A row of them, asked at `now` (since 1970, UTC).
std::vector<float> queue_features(const AskedJob& asked, const std::vector<PresentJob>& present,
                                  Seconds now);

/// Of a look at `now`; what is held, or waits for another or a date, is left out.  `room`: what each
/// has, where that was told.
std::vector<PresentJob> present_in(const WatchedQueue& queue, const WatchedRoom& room,
                                   Numbers& partitions, Numbers& users, Seconds now);

}  // namespace hpcbatch::foresight
