// How well waits are told, on polls of a real queue: an estimator beside what needs no learning.
#pragma once

#include "hpcbatch/estimator.hpp"
#include "hpcbatch/result.hpp"
#include "replay/poll_file.hpp"

#include <boost/json/object.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace hpcbatch::estimate {

/// Makes a model of a table; may take minutes.
using Learner = std::function<Result<std::unique_ptr<EstimatorModel>>(const TrainingTable&)>;
/// What is being done, how much of it, of how much.
using Progress = std::function<void(const std::string&, std::size_t, std::size_t)>;

struct ReplayOptions {
  std::string estimator;      ///< its name, for the table
  Learner learner;            ///< empty: only what needs no learning
  std::size_t first_day{21};  ///< from 0; what comes before is the past of the first block
  std::size_t block{5};       ///< days that one model tells
  std::size_t splits{3};      ///< draws of a tenth of the days
};

/// Two protocols.  `random`: a tenth of the days is told by what is learned of all others, later ones
/// too.  `time`: each block of days is told by what was known at its first poll; a model is used where
/// it is better than medians on the block before; bounds are conformal, and move day by day.
///
/// {"jobs", "polls", "from", "until" (seconds), "estimator": name or null, "unused": [sentence...],
///  "protocols": [{"name", "jobs", "rows": [{"who", "mean_square", "within_2", "within_3",
///  "median_error_h", "held_50": [...], "held_90": [...], "bound_90_h"}]}]}; parts of 1; "held" of each
/// block.  Throws std::invalid_argument with one sentence where the polls are of too few days.
boost::json::object replay(const foresight::Polls& polls, const ReplayOptions& options,
                           const Progress& progress);

}  // namespace hpcbatch::estimate
