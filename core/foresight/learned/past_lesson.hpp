// What a site's accounting teaches: for each batch job what the queue showed when it came, and how
// long it then waited.
#pragma once

#include "foresight/learned/features.hpp"
#include "hpcbatch/estimator.hpp"
#include "hpcbatch/queue_history.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch::foresight {

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
