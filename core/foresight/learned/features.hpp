// The inputs of an estimator: what is known of a queue at a moment, and no more.
#pragma once

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
