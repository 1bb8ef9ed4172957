// A job of a batch system, as far as its wait depends on it.
#pragma once

#include <cstdint>
#include <optional>

namespace hpcbatch::foresight {

/// Since any moment that all share.
using Seconds = std::int64_t;
inline constexpr Seconds kMinute = 60, kHour = 3600, kDay = 86'400;

struct Job {
  Seconds submitted{0};
  Seconds limit{0};
  Seconds runs{0};                     ///< cut at the limit; 0: cancelled while it waited
  std::int32_t nodes{1};               ///< or processors, where a cluster is shared by these
  double priority{0};                  ///< beside what the cluster gives for age and size
  std::int32_t user{-1};               ///< -1: nobody known, and no bound
  std::uint32_t name{0};               ///< alike for jobs whose names differ in digits alone
  std::optional<std::uint32_t> after;  ///< may not start before that one, submitted before, ended
};

}  // namespace hpcbatch::foresight
