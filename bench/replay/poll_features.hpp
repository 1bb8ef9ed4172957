// The inputs of an estimator: what is known of each job at the moment of its poll, and no more.
#pragma once

#include "hpcbatch/estimator.hpp"
#include "replay/poll_file.hpp"

#include <cstddef>
#include <optional>
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

}  // namespace hpcbatch::foresight
