// Jobs that waited when a queue was looked at, and how long they then waited, from a file.
#pragma once

#include "foresight/job.hpp"
#include "foresight/learned/known_columns.hpp"

#include <array>
#include <cstdint>
#include <istream>
#include <limits>
#include <vector>

namespace hpcbatch::foresight {

inline constexpr float kNotSaid = std::numeric_limits<float>::quiet_NaN();

/// What is known of a job that waits when it is looked at.
struct PolledJob {
  Seconds polled{0}, submitted{0}, eligible{0};
  std::uint32_t partition{0}, account{0};
  float nodes{0}, gpus{0}, billing{0};              ///< asked for, or kNotSaid
  std::array<float, kKnownColumns.size()> known{};  ///< or kNotSaid
};

struct Polls {
  std::vector<PolledJob> jobs;  ///< in the order of their polls
  std::vector<Seconds> waited;  ///< of each, from its poll to its start
};

/// Comma-separated with titles; columns in any order, of which only those of `kKnownColumns`, of
/// `kFactColumns` and `kWaitColumn` are read.  Throws std::invalid_argument with one sentence, and
/// the line where there is one.
Polls read_polls(std::istream& in);

}  // namespace hpcbatch::foresight
