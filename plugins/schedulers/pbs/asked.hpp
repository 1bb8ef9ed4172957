// What a batch job asked for, as its record has it.
#pragma once

#include "records.hpp"

#include <chrono>
#include <optional>

namespace hpcbatch::pbs {

/// More is a slip or an attack, and no batch job.
inline constexpr long kMostCpusOfAJob = 10'000'000;
/// Stands for a limit that is none.
inline constexpr std::chrono::seconds kNoLimit = std::chrono::hours{24 * 365};

/// From 0 to the most; 0 where nothing is told.
double bounded(std::optional<long> count);

/// In all; at least one.
double cpus_asked_for(const Record& job);

std::chrono::seconds limit_asked_for(const Record& job);

}  // namespace hpcbatch::pbs
