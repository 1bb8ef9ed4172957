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
#include <string_view>
#include <utility>
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

// What a site's accounting teaches: for each batch job what the queue showed when it came, and how
// long it then waited.

/// A batch job, when nothing but room was missing, and what came of it.
struct PastWait {
  Seconds asked{0};
  Seconds waited{0};  ///< until it started, or was seen to wait last
  bool has_started{false};
  std::pair<std::uint32_t, int> alike;  ///< partition and class of its limit
};

/// A row for each, in the order of `asked`.
struct PastLesson {
  FeatureTable inputs;
  std::vector<PastWait> waits;
  std::vector<std::string> partitions;  ///< by their numbers
};

/// Of jobs that accounting told of at `now`: those that came before `since` only wait or run beside
/// the others.  Evenly chosen where there are more than `most`.  A row knows of others only what had
/// happened by the moment at which its own job came.
PastLesson past_lesson(const std::vector<PastJob>& jobs, Seconds since, Seconds now,
                       std::size_t most);

/// Those that came before `now`, with what is known of their waits then; one that is `half_life`
/// older than another counts half as much.
TrainingTable known_by(const PastLesson& lesson, Seconds now, Seconds half_life);

// Batch jobs of the past as text: a line each, on its way from the engine to who learns from them.

std::string past_text(const std::vector<PastJob>& jobs);
/// Throws std::invalid_argument with one sentence where it is not what `past_text` makes.
std::vector<PastJob> past_jobs(std::string_view text);

}  // namespace hpcbatch::foresight
